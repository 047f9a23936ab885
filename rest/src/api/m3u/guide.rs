//! The guide of an account at a panel or portal: a guide source that is created with the account.

use domain::account::Account;
use domain::guide::source::{GuideSource, GuideSourceKind};
use route_frame::call::Call;
use server::reply::Refusal;
use storage::Write;
use tracing::warn;

use crate::api::epg::sources::records::{forget_content, new_source};
use crate::context::RestCall;

/// Creates a guide source for the panel or portal of an account, unless the account has one. It is refreshed as often as the
/// playlist, and daily if the playlist is never refreshed.
pub(super) fn create(write: &mut Write<'_>, account: &Account) -> Result<Option<GuideSource>, Refusal> {
    if account.list.panel().is_none() && account.list.portal().is_none() {
        return Err(Refusal::field("create_epg", "Only an account of the types XC and STALKER has a guide."));
    }
    let known = write.all::<GuideSource>()?;
    if known.iter().any(|it| it.kind == GuideSourceKind::Panel && it.account == Some(account.id)) {
        return Ok(None);
    }
    let numbered = (2_u64..).map(|it| format!("{} {it}", account.name));
    let mut names = std::iter::once(account.name.clone()).chain(numbered);
    let mut source = new_source(write, GuideSourceKind::Panel)?;
    source.name = names.find(|name| known.iter().all(|it| it.name != *name)).unwrap_or_default();
    source.account = Some(account.id);
    source.schedule = account.schedule.clone();
    source.schedule_by_default(false);
    write.put(&source)?;
    Ok(Some(source))
}

/// Notes that an account leads to another panel or portal, so that its guide is fetched as a whole.
pub(super) fn forget_guides(write: &mut Write<'_>, account: &Account) -> Result<(), Refusal> {
    let sources = write.all::<GuideSource>()?;
    sources.iter().filter(|it| it.account == Some(account.id)).try_for_each(|it| forget_content(write, it.id))
}

/// Starts the first refresh of a guide source that was created.
pub(super) async fn refresh(call: &Call, created: Option<GuideSource>) {
    if let Some(source) = created
        && let Err(error) = call.rest().guide.guide_refreshes.changed(source.id, true).await
    {
        // The schedule will try again.
        warn!(source.id = %source.id, "failed to start the refresh of a guide: {error}");
    }
}
