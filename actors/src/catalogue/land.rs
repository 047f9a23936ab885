//! Writes what was imported.

use domain::account::Account;
use domain::ids::AccountId;
use domain::vod::{AccountCategory, FoundCategory, FoundDetails, Relation, RelationId, TitleKind};
use storage::{FoundEpisodes, FoundTitles, LandError, LandedTitles, Models, TitleSync};

use super::error::{VodError, words_of};
use super::queue::{BACKGROUND_MAX, Offer};

/// Writes the categories of a kind that an account lists, and returns all links of the account with categories of this
/// kind.
pub(super) fn categories(
    models: &Models,
    account: &Account,
    kind: TitleKind,
    found: Vec<FoundCategory>,
    now: i64,
) -> Result<Vec<AccountCategory>, VodError> {
    let (_, what) = words_of(kind);
    let is_known = |it: &AccountCategory| {
        it.kind == kind && it.last_seen.is_none() && it.provider_ids.iter().any(|it| !it.is_empty())
    };
    let listed = found.iter().any(|it| !it.provider_id.is_empty());
    let known = models.vod_account_categories.load();
    // Panels send an empty list when they are overloaded.
    if !listed && known.by("account", account.id.0.to_be_bytes()).any(|it| is_known(it)) {
        return Err(VodError::Empty { what });
    }
    let enables_new = account.enables_new_category(kind);
    models
        .vod
        .land_categories(account.id, kind, found, enables_new, now)
        .map_err(|it| landing_error(it, what))
}

/// Writes the titles of a kind that an account lists.
pub(super) fn titles(
    models: &Models,
    sync: &TitleSync,
    found: &impl FoundTitles,
    is_stopped: &dyn Fn() -> bool,
) -> Result<LandedTitles, VodError> {
    let (what, _) = words_of(sync.kind);
    models.vod.land_titles(sync, found, is_stopped).map_err(|it| landing_error(it, what))
}

/// Writes the details of a title.
pub(super) fn details(
    models: &Models,
    relation: RelationId,
    found: FoundDetails,
    now: i64,
) -> Result<(), VodError> {
    models.vod.land_details(relation, found, now).map(drop).map_err(|it| landing_error(it, "films"))
}

/// Writes the episodes of series, each answer being complete.
pub(super) fn episodes(
    models: &Models,
    account: &Account,
    found: Vec<FoundEpisodes>,
    now: i64,
) -> Result<(), VodError> {
    for landed in models.vod.land_episodes(found, account.stale_stream_days, now)? {
        landed.map_err(|it| landing_error(it, "episodes"))?;
    }
    Ok(())
}

fn landing_error(error: LandError, what: &'static str) -> VodError {
    match error {
        LandError::Empty => VodError::Empty { what },
        LandError::Unfamiliar { n_known, n_seen } => VodError::Dwindled { what, n_known, n_seen },
        LandError::AccountGone | LandError::TitleGone => VodError::AccountChanged,
        LandError::TooMany { .. } => VodError::TooMany { what },
        LandError::Stopped => VodError::Stopped,
        LandError::List(error) => VodError::Unread(error),
        LandError::Store(error) => VodError::Store(error),
    }
}

/// Returns the series of an account whose episodes are to be loaded: those that changed since they were, and if `is_all`
/// those that never were.
pub(super) fn series_to_load(
    models: &Models,
    account: AccountId,
    is_all: bool,
) -> Result<Vec<Offer>, VodError> {
    let links = models.vod_account_categories.load();
    let is_enabled = |it: &Relation| {
        links.by("account", account.0.to_be_bytes()).any(|link| link.category == it.category && link.enabled)
    };
    let mut offers = Vec::new();
    models.vod.while_each(|title| {
        if title.id.kind() == TitleKind::Series {
            let own = title.relations_of(account).filter(|it| {
                !it.is_stale()
                    && it.needs_episodes()
                    && (is_all || it.episodes_at.is_some())
                    && is_enabled(it)
            });
            offers.extend(own.map(|it| Offer { title: title.id, relation: it.id }));
        }
        offers.len() < BACKGROUND_MAX
    })?;
    Ok(offers)
}
