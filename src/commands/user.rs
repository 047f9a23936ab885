//! `headwater user add`: creates a user, usually the first; the REST API creates the others.

use std::io::{BufRead, Read};
use std::process::ExitCode;

use actors::now_ms;
use anyhow::{Context, bail, ensure};
use domain::ids::UserId;
use domain::user::{User, UserLevel, check_username};
use storage::Error;

use crate::auth::{PASSWORD_BYTES_MAX, hash_password};
use crate::config::{Config, NewUser, PASSWORD_VARIABLE};
use crate::data::DataFolder;
use crate::play::say;

/// Length of a generated password, in hexadecimal digits.
const PASSWORD_CHARS: usize = 24;

/// Creates a user. A generated password is printed once.
pub(super) fn add(config: &Config, new: &NewUser) -> anyhow::Result<ExitCode> {
    check_username(&new.name)?;
    let level = match (new.level, new.superuser) {
        (Some(number), _) => UserLevel::of(number.into()).context("the level must be 0, 1 or 10")?,
        (None, true) => UserLevel::Admin,
        (None, false) => UserLevel::default(),
    };
    let given = given_password(new)?;
    let password = given.clone().unwrap_or_else(generate_password);
    ensure!(!password.is_empty(), "the password is empty");
    ensure!(password.len() <= PASSWORD_BYTES_MAX, "the password is longer than {PASSWORD_BYTES_MAX} bytes");

    let store = DataFolder::new(&config.data_dir).open()?;
    let mut user = User::new(UserId(0), &new.name, level, now_ms());
    user.password = Some(hash_password(&password));
    user.is_superuser = new.superuser;
    user.is_staff = new.superuser;
    let written = store.write_blocking(move |write| {
        user.id = UserId(write.next_id::<User>()?);
        write.put(&user)
    });
    match written {
        Err(Error::Taken { .. }) => bail!("user {} already exists", new.name),
        written => written?,
    }
    store.close();
    say(&format!("created user {} ({})", new.name, role(level)));
    if given.is_none() {
        say(&format!("password: {password}\nThis password is not shown again."));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the name of a level for people.
fn role(level: UserLevel) -> &'static str {
    match level {
        UserLevel::Streamer => "viewer",
        UserLevel::Standard => "standard user",
        UserLevel::Admin => "admin",
    }
}

/// Returns the password from standard input or from the environment variable.
fn given_password(new: &NewUser) -> anyhow::Result<Option<String>> {
    if !new.password_stdin {
        return Ok(std::env::var(PASSWORD_VARIABLE).ok());
    }
    let mut line = String::new();
    // One byte more than the maximum, plus the line ending.
    let mut input = std::io::stdin().lock().take(PASSWORD_BYTES_MAX as u64 + 3);
    input.read_line(&mut line).context("failed to read the password from standard input")?;
    Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned()))
}

fn generate_password() -> String {
    // Two UUIDs, because some digits of each are fixed.
    let digits = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
    digits.chars().skip(20).take(PASSWORD_CHARS).collect()
}
