//! One refresh of the films and series of a panel or portal.
//!
//! For each kind: its categories, then the titles of those that are enabled. What is listed completely replaces what is
//! stored; anything else (an empty or failed answer, a web page) changes nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::account::{Account, RefreshOutcome};
use domain::ids::VodCategoryId;
use domain::panel::PanelLogin;
use domain::panel::vod::SkippedElements;
use domain::vod::{AccountCategory, TitleKind};
use media::spawn_blocking;
use storage::{LandedTitles, Models, TitleSync};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::error::{VodError, words_of};
use super::lists::{CATEGORY_QUESTIONS_MAX, Categories, ListedCategories, Panel, ReadTitles};
use super::portal::PortalTitles;
use super::progress::{VodPhase, VodProgress, VodRefreshStatus};
use super::queue::SyncRequest;
use super::{Parts, TitleServer};
use crate::addresses::AccountAddresses;

/// The result of a refresh of one kind.
pub(super) struct KindSummary {
    kind: TitleKind,
    /// Number of categories, and of those that are enabled.
    n_categories: usize,
    n_enabled: usize,
    landed: LandedTitles,
    skipped: SkippedElements,
}

/// A refresh that is under way.
pub(super) struct SyncJob<'a> {
    pub(super) parts: &'a Parts,
    pub(super) account: Arc<Account>,
    pub(super) request: SyncRequest,
    pub(super) progress: Arc<VodProgress>,
    pub(super) stop: CancellationToken,
}

impl SyncJob<'_> {
    /// Refreshes films and series; returns the outcome with a sentence for an admin, and the error if the panel should
    /// not be asked further.
    pub(super) async fn run(
        &self,
        server: &TitleServer,
    ) -> (Option<RefreshOutcome>, String, Option<VodError>) {
        let mut sentences = Vec::new();
        let mut worst = Some(RefreshOutcome::Success);
        let mut portal = match server {
            TitleServer::Panel(_) => None,
            TitleServer::Portal(client) => PortalTitles::new(self, client),
        };
        for kind in TitleKind::ALL {
            match self.kind_of(server, portal.as_mut(), kind).await {
                Ok(summary) => sentences.push(summary.sentence()),
                Err(error) => {
                    self.note_failure(kind, &error).await;
                    if let VodError::Fetch(cause) = &error {
                        let addresses = AccountAddresses::new(self.parts.models.clone());
                        addresses.list_failed(&self.account, server.address(), cause);
                    }
                    let (what, _) = words_of(kind);
                    sentences.push(format!("{}: {}", capital(what), error.sentence()));
                    worst = match (worst, error.outcome()) {
                        (_, None) => None,
                        (Some(RefreshOutcome::Success), outcome) => outcome,
                        (worst, _) => worst,
                    };
                    if error.is_of_panel() {
                        return (worst, sentences.join(" "), Some(error));
                    }
                }
            }
        }
        (worst, sentences.join(" "), None)
    }

    async fn kind_of(
        &self,
        server: &TitleServer,
        portal: Option<&mut PortalTitles<'_>>,
        kind: TitleKind,
    ) -> Result<KindSummary, VodError> {
        match (server, portal) {
            (TitleServer::Panel(login), _) => self.kind(login, kind).await,
            (TitleServer::Portal(_), Some(portal)) => {
                self.report(|it| it.phase = phase_of(kind));
                self.stop.run_until_cancelled(portal.kind(kind)).await.unwrap_or(Err(VodError::Stopped))
            }
            (TitleServer::Portal(_), None) => Err(VodError::AccountChanged),
        }
    }

    fn report(&self, change: impl FnOnce(&mut VodRefreshStatus)) {
        report(&self.progress, &self.account, self.request, change);
    }

    /// Reports that more titles were read.
    pub(super) fn report_titles(&self, n_more: u64) {
        self.report(|it| it.n_titles += n_more);
    }

    async fn kind(&self, login: &PanelLogin, kind: TitleKind) -> Result<KindSummary, VodError> {
        self.report(|it| it.phase = VodPhase::Categories);
        let fetch = self.parts.fetch.for_account(&self.account);
        let panel = Panel { fetch: &fetch, account: &self.account, login, stop: &self.stop };
        let ListedCategories { found, adult, skipped } = panel.categories(kind).await?;
        self.check_account()?;
        let (models, account, now) = (self.parts.models.clone(), self.account.clone(), (self.parts.now)());
        let links = blocking(move || super::land::categories(&models, &account, kind, found, now)).await?;
        let enabled: Vec<&AccountCategory> = links.iter().filter(|it| it.enabled).collect();
        self.report(|it| it.phase = phase_of(kind));
        if enabled.is_empty() {
            return Ok(KindSummary::without_titles(kind, &links, skipped));
        }
        let categories = Categories::new(&links, adult);
        let ids: Vec<(&str, &AccountCategory)> =
            enabled.iter().flat_map(|link| link.provider_ids.iter().map(|id| (id.as_str(), *link))).collect();
        let is_singly = ids.len() <= CATEGORY_QUESTIONS_MAX && ids.iter().all(|(id, _)| !id.is_empty());
        let mut read = ReadTitles::new();
        let mut asked = BTreeSet::new();
        if is_singly {
            let mut silent = BTreeSet::new();
            for (id, link) in &ids {
                let before = read.n_listed;
                read = panel.titles(kind, Some(*id), &categories, read, self.on_title(before)).await?;
                asked.insert(link.category);
                if read.n_listed == before {
                    silent.insert(link.category);
                }
            }
            // An empty answer says nothing about the titles of its category.
            asked.retain(|it| !silent.contains(it));
        } else {
            read = panel.titles(kind, None, &categories, read, self.on_title(0)).await?;
        }
        self.land(kind, &links, read, (is_singly.then_some(asked), skipped)).await
    }

    /// Writes the titles that were read. `asked` are the categories that have answered, if not all were asked for.
    pub(super) async fn land(
        &self,
        kind: TitleKind,
        links: &[AccountCategory],
        read: ReadTitles,
        (asked, mut skipped): (Option<BTreeSet<VodCategoryId>>, SkippedElements),
    ) -> Result<KindSummary, VodError> {
        let (what, _) = words_of(kind);
        if read.n_listed == 0 {
            return Err(VodError::Empty { what });
        }
        self.check_account()?;
        skipped.extend(&read.skipped);
        let sync = TitleSync {
            account: self.account.id,
            kind,
            asked,
            is_confirmed: self.request.confirm,
            stale_days: self.account.stale_stream_days,
            now: (self.parts.now)(),
        };
        let (models, stop) = (self.parts.models.clone(), self.stop.clone());
        let landed =
            blocking(move || super::land::titles(&models, &sync, &read, &|| stop.is_cancelled())).await?;
        self.report(|it| {
            it.n_new += landed.n_new;
            it.n_changed += landed.n_changed;
            it.n_gone += landed.n_stale + landed.n_removed;
        });
        Ok(KindSummary { landed, ..KindSummary::without_titles(kind, links, skipped) })
    }

    /// Returns a receiver of the number of titles read so far, which begins with `seen`.
    fn on_title(&self, mut seen: u64) -> impl FnMut(u64) + Send + 'static {
        let (progress, account, request) = (self.progress.clone(), self.account.clone(), self.request);
        move |n| {
            let more = n.saturating_sub(std::mem::replace(&mut seen, n));
            report(&progress, &account, request, |it| it.n_titles += more);
        }
    }

    /// Checks that the account is still the one that was asked for.
    fn check_account(&self) -> Result<(), VodError> {
        check_account(&self.parts.models, &self.account)
    }

    async fn note_failure(&self, kind: TitleKind, error: &VodError) {
        let Some(outcome) = error.outcome() else { return };
        let (models, id, message) = (self.parts.models.clone(), self.account.id, error.sentence());
        let now = (self.parts.now)();
        let done = blocking(move || Ok(models.vod.note_failed_sync(id, kind, outcome, &message, now)?)).await;
        if let Err(error) = done {
            warn!(account.id = %id, "failed to store the result of a refresh of films and series: {error}");
        }
    }
}

fn phase_of(kind: TitleKind) -> VodPhase {
    match kind {
        TitleKind::Movie => VodPhase::Movies,
        TitleKind::Series => VodPhase::Series,
    }
}

fn report(
    progress: &VodProgress,
    account: &Account,
    request: SyncRequest,
    change: impl FnOnce(&mut VodRefreshStatus),
) {
    if let Some(mut row) = progress.get(account.id).filter(|it| it.job == request.job) {
        change(&mut row);
        progress.update(row);
    }
}

/// Checks that an account is still the one that its panel was asked about.
pub(super) fn check_account(models: &Models, account: &Account) -> Result<(), VodError> {
    let accounts = models.accounts.load();
    let now = accounts.get(account.id.0).filter(|it| it.is_active && it.enable_vod);
    match now {
        Some(now) if now.list == account.list => Ok(()),
        _ => Err(VodError::AccountChanged),
    }
}

/// Runs work on a thread that may block.
pub(super) async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> Result<R, VodError> + Send + 'static,
) -> Result<R, VodError> {
    spawn_blocking(work).await.unwrap_or(Err(VodError::Panicked))
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|it| it.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

impl KindSummary {
    /// Returns the summary of a refresh that found no titles.
    pub(super) fn without_titles(
        kind: TitleKind,
        links: &[AccountCategory],
        skipped: SkippedElements,
    ) -> Self {
        let n_enabled = links.iter().filter(|it| it.enabled).count();
        Self { kind, n_categories: links.len(), n_enabled, landed: LandedTitles::default(), skipped }
    }

    /// Returns the summary as a sentence for an admin.
    fn sentence(&self) -> String {
        let (what, _) = words_of(self.kind);
        let Self { n_categories, n_enabled, landed, skipped, .. } = self;
        let mut text = format!("{}: {n_enabled} of {n_categories} categories are enabled", capital(what));
        if *n_enabled > 0 {
            text += &format!("; {landed}");
        }
        if skipped.total() > 0 {
            text += &format!("; {skipped}");
        }
        text + "."
    }
}
