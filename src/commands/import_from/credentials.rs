//! The credentials for the REST interface of the other service: from the environment, from standard input, or typed
//! without being shown. There is no option for a secret, because every user of the machine can read command lines.

use std::io::{self, BufRead, IsTerminal, Read, Write, stderr, stdin};

use anyhow::{Context, bail, ensure};
use config::{NewImportFrom, SOURCE_API_KEY_VARIABLE, SOURCE_PASSWORD_VARIABLE};
use domain::secret::Secret;
use domain::source_url::SourceUrl;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use super::interface::Credentials;

/// Maximum length of a secret, in bytes.
const SECRET_BYTES_MAX: u64 = 4096;

/// Finds the credentials.
pub(super) fn find(address: &SourceUrl, new: &NewImportFrom) -> anyhow::Result<Credentials> {
    let authority = address.expose().split("://").nth(1).unwrap_or_default();
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    ensure!(
        !authority.contains('@'),
        "leave the credentials out of the address, because every user of this machine can read it; use --username, and {SOURCE_PASSWORD_VARIABLE} or the prompt"
    );
    let variable = |name| std::env::var(name).ok().filter(|it| !it.is_empty()).map(Secret::new);
    if let Some(key) = variable(SOURCE_API_KEY_VARIABLE).filter(|_| new.username.is_none()) {
        return Ok(Credentials::ApiKey(key));
    }
    let Some(username) = new.username.clone() else {
        bail!(
            "name an admin of that service with --username, or set {SOURCE_API_KEY_VARIABLE} to the API key of one"
        );
    };
    let password = match variable(SOURCE_PASSWORD_VARIABLE) {
        _ if new.password_stdin => line().context("failed to read the password from standard input")?,
        Some(password) => password,
        None if stdin().is_terminal() => prompt(&format!("Password of {username} at that service: "))?,
        None => {
            bail!("set {SOURCE_PASSWORD_VARIABLE} to the password of {username}, or use --password-stdin")
        }
    };
    Ok(Credentials::Password { username, password })
}

/// Asks for a secret on the terminal, without showing it.
fn prompt(question: &str) -> anyhow::Result<Secret> {
    let input = stdin();
    let before = tcgetattr(&input).context("failed to prepare the terminal")?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    write!(stderr(), "{question}")?;
    stderr().flush()?;
    tcsetattr(&input, OptionalActions::Flush, &silent).context("failed to prepare the terminal")?;
    let typed = line();
    tcsetattr(&input, OptionalActions::Flush, &before).context("failed to restore the terminal")?;
    writeln!(stderr())?;
    Ok(typed?)
}

/// Reads the first line of standard input.
fn line() -> io::Result<Secret> {
    let mut line = String::new();
    stdin().lock().take(SECRET_BYTES_MAX).read_line(&mut line)?;
    Ok(Secret::new(line.trim_end_matches(['\r', '\n'])))
}
