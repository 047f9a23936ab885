//! The edit of a guide source, checked before anything is written.

use actors::{check_cron, check_time_zone};
use domain::account::Account;
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::source_url::SourceUrl;
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use storage::Write;

use super::preview::generated_guide;
use super::view::EPGSourceEdit;
use crate::api::text::is_web_url;
use crate::record::{set, set_fields, set_text};

/// A valid edit, except for its account.
pub(super) struct SourceChange(EPGSourceEdit);

impl SourceChange {
    pub(super) fn new(edit: EPGSourceEdit) -> Result<Self, Refusal> {
        let mut errors = FieldErrors::default();
        let url = edit.url.iter().flatten().find(|it| !it.is_empty());
        if url.is_some_and(|it| !is_web_url(it)) {
            errors.add("url", "Enter a valid URL.");
        }
        let cron = edit.cron_expression.as_ref().filter(|it| !it.is_empty());
        if let Some(Err(message)) = cron.map(|it| check_cron(it)) {
            errors.add("cron_expression", message);
        }
        let zone = edit.default_time_zone.iter().flatten().find(|it| !it.is_empty());
        if let Some(Err(message)) = zone.map(|it| check_time_zone(it)) {
            errors.add("default_time_zone", message);
        }
        Ok(errors.or(Self(edit))?)
    }

    /// Applies the edit. `file` is the name of a file that was uploaded with it.
    pub(super) fn apply(
        self,
        write: &Write<'_>,
        source: &mut GuideSource,
        file: Option<String>,
    ) -> Result<(), Refusal> {
        let edit = self.0;
        // Every stored source has a name.
        let is_new = source.name.is_empty();
        let had_address = !is_new && source.has_address();
        source.is_schedule_chosen |= edit.refresh_interval.is_some();
        set(&mut source.name, edit.name);
        let url = edit.url.map(|it| it.filter(|it| !it.is_empty()).map(SourceUrl::new));
        if url.as_ref().is_some_and(Option::is_some) {
            source.file = None;
        }
        set(&mut source.url, url);
        if file.is_some() {
            (source.file, source.url) = (file, None);
        }
        let changes_login = edit.username.is_some() || edit.password.is_some();
        set_text(&mut source.username, edit.username);
        let password = edit.password.map(|it| it.filter(|it| !it.expose().is_empty()));
        set(&mut source.password, password);
        set_text(&mut source.time_zone, edit.default_time_zone);
        set_fields!(source from edit: account, is_active, priority, history_days, offset_minutes, custom_properties);
        check_times(source)?;
        set(&mut source.schedule.interval_hours, edit.refresh_interval);
        set(&mut source.schedule.cron, edit.cron_expression);
        if source.kind == GuideSourceKind::Generated {
            generated_guide(&source.custom_properties)?;
        }
        source.schedule_by_default(had_address);
        check_login(source, is_new || changes_login)?;
        check_account(write, source)
    }
}

/// Refuses a source of Schedules Direct without a login, whose refresh could not succeed. Other changes of a source that
/// was stored without one are possible.
fn check_login(source: &GuideSource, is_checked: bool) -> Result<(), Refusal> {
    if source.kind != GuideSourceKind::SchedulesDirect || !is_checked {
        return Ok(());
    }
    const REQUIRED: &str = "This field is required for sources of the type schedules_direct.";
    let mut errors = FieldErrors::default();
    if source.username.as_ref().is_none_or(|it| it.trim().is_empty()) {
        errors.add("username", REQUIRED);
    }
    if source.password.is_none() {
        errors.add("password", REQUIRED);
    }
    Ok(errors.or(())?)
}

/// Refuses a zone or an offset for sources that have no times to which it could apply.
fn check_times(source: &GuideSource) -> Result<(), Refusal> {
    let mut errors = FieldErrors::default();
    if source.time_zone.is_some() && !matches!(source.kind, GuideSourceKind::Xmltv | GuideSourceKind::Panel) {
        errors
            .add("default_time_zone", "Only sources of the types xmltv and panel have a default time zone.");
    }
    if source.offset_minutes != 0
        && matches!(source.kind, GuideSourceKind::Generated | GuideSourceKind::Written)
    {
        errors.add("offset_minutes", "Sources of the types dummy and written have no offset.");
    }
    Ok(errors.or(())?)
}

/// Refuses a source of a panel without an account of a panel or portal, and other sources with an account.
fn check_account(write: &Write<'_>, source: &GuideSource) -> Result<(), Refusal> {
    match (source.kind, source.account) {
        (GuideSourceKind::Panel, None) => {
            Err(Refusal::field("account", "This field is required for sources of the type panel."))
        }
        (GuideSourceKind::Panel, Some(id)) => {
            let account = write.get::<Account>(id.0)?.ok_or_else(|| Refusal::no_such("account", id))?;
            match account.list.panel().is_some() || account.list.portal().is_some() {
                true => Ok(()),
                false => Err(Refusal::field("account", "The account is not of the type XC or STALKER.")),
            }
        }
        (_, Some(_)) => Err(Refusal::field("account", "Only a source of the type panel has an account.")),
        (_, None) => Ok(()),
    }
}
