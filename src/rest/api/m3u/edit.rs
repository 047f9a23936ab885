//! What a client sends of an account, checked before anything is written.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use actors::check_cron;
use domain::account::{Account, PlaylistLocation, Rule};
use domain::playlist::rules::Rules;
use domain::source_url::SourceUrl;
use domain::stream::RequestHeaders;
use serde_json::{Map, Value};

use super::text::sentence;
use super::view::M3UAccountEdit;
use crate::http::reply::Refusal;
use crate::rest::frame::input::{FieldErrors, NO_FIELD};

/// An edit of which everything can be taken.
pub(super) struct Change {
    list: ListChange,
    user_agent: Option<Option<String>>,
    headers: Option<RequestHeaders>,
    rules: Option<Vec<Rule>>,
    release_delay: Option<Duration>,
    rest: M3UAccountEdit,
}

/// What is to become of the place where the list is.
enum ListChange {
    Stays,
    Is(PlaylistLocation),
    /// If it is an address there is none any more.
    NoUrl,
    NoFile,
    None,
}

impl Change {
    /// Checks what was sent for an account that has this list now. Looks at the file that it names, if it is another
    /// one.
    pub(super) async fn of(mut edit: M3UAccountEdit, now: &PlaylistLocation) -> Result<Self, Refusal> {
        let mut errors = FieldErrors::default();
        let list = list_of(&mut edit, &mut errors);
        if let ListChange::Is(PlaylistLocation::File(path)) = &list
            && ListChange::Is(PlaylistLocation::File(path.clone())).differs_from(now)
            && let Err(message) = check_file(path.clone()).await
        {
            errors.add("file_path", message);
        }
        let user_agent = edit.user_agent.take().map(|it| it.filter(|it| !it.is_empty()));
        if let Some(Some(agent)) = &user_agent
            && !RequestHeaders::default().set("User-Agent", agent)
        {
            errors.add("user_agent", "This cannot be sent in a header.");
        }
        let headers = edit.headers.take().map(|it| headers_of(it, &mut errors));
        let rules: Option<Vec<Rule>> =
            edit.rules.take().map(|it| it.into_iter().map(super::view::M3UAccountRule::rule).collect());
        if let Some(Err(error)) = rules.as_ref().map(|it| Rules::new(it)) {
            errors.add("rules", sentence(error));
        }
        if let Some(Err(message)) =
            edit.cron_expression.as_ref().filter(|it| !it.is_empty()).map(|it| check_cron(it))
        {
            errors.add("cron_expression", message);
        }
        let release_delay = match edit.release_delay.map(Duration::try_from_secs_f64) {
            Some(Err(_)) => {
                errors.add("release_delay", "A valid number is required.");
                None
            }
            Some(Ok(delay)) => Some(delay),
            None => None,
        };
        match errors.is_empty() {
            true => Ok(Change { list, user_agent, headers, rules, release_delay, rest: edit }),
            false => Err(errors.into()),
        }
    }

    /// What was sent goes over what is there.
    pub(super) fn apply(self, account: &mut Account, at: i64) {
        let edit = self.rest;
        self.list.apply(&mut account.list);
        if let Some(agent) = self.user_agent {
            account.headers.user_agent = agent;
        }
        if let Some(headers) = self.headers {
            account.headers = RequestHeaders { user_agent: account.headers.user_agent.take(), ..headers };
        }
        account.rules = self.rules.unwrap_or_else(|| std::mem::take(&mut account.rules));
        account.release_delay = self.release_delay.unwrap_or(account.release_delay);
        account.name = edit.name.unwrap_or_else(|| std::mem::take(&mut account.name));
        account.is_active = edit.is_active.unwrap_or(account.is_active);
        if let Some(max_streams) = edit.max_streams
            && let Some(profile) = account.profiles.iter_mut().find(|it| it.is_default)
        {
            profile.max_streams = max_streams;
        }
        account.schedule.interval_hours = edit.refresh_interval.unwrap_or(account.schedule.interval_hours);
        account.schedule.cron =
            edit.cron_expression.unwrap_or_else(|| std::mem::take(&mut account.schedule.cron));
        account.stale_stream_days = edit.stale_stream_days.unwrap_or(account.stale_stream_days);
        account.priority = edit.priority.unwrap_or(account.priority);
        if let Some(properties) = edit.custom_properties {
            account.custom_properties = properties.unwrap_or_default();
        }
        account.identity = edit.stream_identity.map_or(account.identity, |it| it.0);
        // There is one kind of account, and reading it has seen to that.
        let _: Option<super::text::AccountType> = edit.account_type;
        account.updated_at = at;
    }
}

impl ListChange {
    fn differs_from(&self, now: &PlaylistLocation) -> bool {
        matches!(self, Self::Is(list) if list != now)
    }

    fn apply(self, list: &mut PlaylistLocation) {
        match (self, &list) {
            (Self::Is(other), _) => *list = other,
            (Self::None, _)
            | (Self::NoUrl, PlaylistLocation::Url(_))
            | (Self::NoFile, PlaylistLocation::File(_)) => *list = PlaylistLocation::None,
            (Self::Stays | Self::NoUrl | Self::NoFile, _) => {}
        }
    }
}

/// Where the list is to be: at an address, in a file, or nowhere. Empty is none.
fn list_of(edit: &mut M3UAccountEdit, errors: &mut FieldErrors) -> ListChange {
    let url = edit.server_url.take().map(|it| it.map(|it| it.0).filter(|it| !it.is_empty()));
    let file = edit.file_path.take().map(|it| it.filter(|it| !it.is_empty()));
    match (url, file) {
        (Some(Some(_)), Some(Some(_))) => {
            errors.add(NO_FIELD, "Give server_url or file_path, not both.");
            ListChange::Stays
        }
        (Some(Some(url)), _) => ListChange::Is(PlaylistLocation::Url(SourceUrl::new(url))),
        (_, Some(Some(path))) => ListChange::Is(PlaylistLocation::File(path)),
        (Some(None), Some(None)) => ListChange::None,
        (Some(None), None) => ListChange::NoUrl,
        (None, Some(None)) => ListChange::NoFile,
        (None, None) => ListChange::Stays,
    }
}

/// Headers of these names and values, beside the user agent, which has a field of its own.
fn headers_of(named: Map<String, Value>, errors: &mut FieldErrors) -> RequestHeaders {
    let mut headers = RequestHeaders::default();
    for (name, value) in named {
        let shown: String = name.chars().take(100).collect();
        if name.eq_ignore_ascii_case("user-agent") {
            errors.add("headers", "The user agent has a field of its own: user_agent.");
        } else if !value.as_str().is_some_and(|it| headers.set(&name, it)) {
            let message = match headers.extra.len() < RequestHeaders::EXTRA_MAX {
                true => format!("\"{shown}\" is no header that can be set, or its value is none."),
                false => format!("There may be {} headers at most.", RequestHeaders::EXTRA_MAX),
            };
            errors.add("headers", message);
        }
    }
    headers
}

/// Is this a file that we can read? A sentence for the admin if it is not.
async fn check_file(path: String) -> Result<(), String> {
    if !Path::new(&path).is_absolute() {
        return Err("Give the absolute path of a file on the gateway's machine.".to_owned());
    }
    // A file of a network may take its time; the threads that answer requests do not wait for it.
    let checked = tokio::task::spawn_blocking(move || {
        // Looked at before it is opened: opening a pipe would wait for whoever writes to it.
        if !std::fs::metadata(&path)?.is_file() {
            return Ok(false);
        }
        File::open(&path).map(|_| true)
    });
    match checked.await {
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => Err("This is not a file.".to_owned()),
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => {
            Err("There is no such file on the gateway's machine.".to_owned())
        }
        Ok(Err(error)) => Err(format!("The gateway cannot read this file: {}.", error.kind())),
        Err(_) => Err("The gateway cannot read this file.".to_owned()),
    }
}
