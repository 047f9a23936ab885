//! `headwater user` and `headwater keys`: manage users and keys, also while the gateway runs.

use std::fmt::Write;
use std::io::{BufRead, Read};
use std::process::ExitCode;

use anyhow::{Context, bail};
use config::{Config, DataFolder, NewPassword, NewUser, PASSWORD_VARIABLE, UserCommand};
use domain::secret::Secret;
use domain::time::iso_millis;
use domain::user::UserLevel;
use services::auth::PASSWORD_BYTES_MAX;

use crate::control::{self, ControlReply, ControlRequest, UserSummary};
use crate::terminal::say;

/// Length of a generated password, in hexadecimal digits.
const PASSWORD_CHARS: usize = 24;

pub(super) fn run(config: &Config, command: &UserCommand) -> anyhow::Result<ExitCode> {
    let folder = DataFolder::new(&config.data_dir);
    match command {
        UserCommand::Add(new) => add(&folder, new)?,
        UserCommand::List => list(&folder)?,
        UserCommand::Passwd(new) => set_password(&folder, new)?,
        UserCommand::Delete { name } => {
            control::run(&folder, ControlRequest::DeleteUser { name: name.clone() })?;
            say(&format!("deleted user {name}"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Replaces the key that signs tokens.
pub(super) fn rotate_token_key(config: &Config) -> anyhow::Result<ExitCode> {
    control::run(&DataFolder::new(&config.data_dir), ControlRequest::RotateTokenKey)?;
    say("replaced the key that signs tokens; every user has to log in again");
    Ok(ExitCode::SUCCESS)
}

/// Creates a user.
fn add(folder: &DataFolder, new: &NewUser) -> anyhow::Result<()> {
    let level = match (new.level, new.superuser) {
        (Some(number), _) => UserLevel::from_number(number.into()).context("the level must be 0, 1 or 10")?,
        (None, true) => UserLevel::Admin,
        (None, false) => UserLevel::default(),
    };
    let (password, is_generated) = password(new.password_stdin)?;
    let (name, is_superuser) = (new.name.clone(), new.superuser);
    control::run(folder, ControlRequest::AddUser { name, level, is_superuser, password: password.clone() })?;
    say(&format!("created user {} ({})", new.name, role(level)));
    show_generated(&password, is_generated);
    Ok(())
}

/// Replaces the password of a user.
fn set_password(folder: &DataFolder, new: &NewPassword) -> anyhow::Result<()> {
    let (password, is_generated) = password(new.password_stdin)?;
    let (name, revoke_secrets) = (new.name.clone(), new.revoke_secrets);
    control::run(folder, ControlRequest::SetPassword { name, password: password.clone(), revoke_secrets })?;
    say(&format!("changed the password of user {}, which ends all logins", new.name));
    if revoke_secrets {
        say("removed the API key and the player password");
    }
    show_generated(&password, is_generated);
    Ok(())
}

fn list(folder: &DataFolder) -> anyhow::Result<()> {
    let ControlReply::Users { users } = control::run(folder, ControlRequest::ListUsers)? else {
        bail!("the running gateway answered something else; is it of another version?");
    };
    let mut text = String::new();
    for user in &users {
        writeln!(text, "{}", line(user)).expect("writing to a String cannot fail");
    }
    say(if users.is_empty() { "no users" } else { &text });
    Ok(())
}

/// Returns a user as one line: id, name, role and last login.
fn line(user: &UserSummary) -> String {
    let superuser = if user.is_superuser { ", superuser" } else { "" };
    let inactive = if user.is_active { "" } else { ", inactive" };
    let login = user.last_login.map_or_else(|| "never".to_owned(), iso_millis);
    format!(
        "{:>4}  {}  ({}{superuser}{inactive})  last login: {login}",
        user.id.0,
        user.username,
        role(user.level)
    )
}

/// Returns the name of a level for people.
fn role(level: UserLevel) -> &'static str {
    match level {
        UserLevel::Streamer => "viewer",
        UserLevel::Standard => "standard user",
        UserLevel::Admin => "admin",
    }
}

/// Returns the password from standard input or from the environment variable, else a generated one and true.
fn password(from_stdin: bool) -> anyhow::Result<(Secret, bool)> {
    if !from_stdin {
        let given = std::env::var(PASSWORD_VARIABLE).ok();
        let is_generated = given.is_none();
        return Ok((Secret::new(given.unwrap_or_else(generate_password)), is_generated));
    }
    let mut line = String::new();
    // One byte more than the maximum, plus the line ending.
    let mut input = std::io::stdin().lock().take(PASSWORD_BYTES_MAX as u64 + 3);
    input.read_line(&mut line).context("failed to read the password from standard input")?;
    Ok((Secret::new(line.trim_end_matches(['\r', '\n'])), false))
}

/// Prints a generated password, once.
fn show_generated(password: &Secret, is_generated: bool) {
    if is_generated {
        say(&format!("password: {}\nThis password is not shown again.", password.expose()));
    }
}

fn generate_password() -> String {
    // Two UUIDs, because some digits of each are fixed.
    let digits = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
    digits.chars().skip(20).take(PASSWORD_CHARS).collect()
}
