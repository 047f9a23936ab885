//! Asks panels how many connections a login has, after a machine of the cluster was lost. See
//! [`domain::cluster::panel_count`] for what is asked when, and which answers count.
//!
//! One question is asked at a time. A panel that does not answer within some seconds changes nothing.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use domain::cluster::NodeInput;
use domain::cluster::panel_count::{PanelCounts, PanelQuestion};
use domain::ids::{AccountId, ProfileId};
use storage::Models;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::{debug, info};

use crate::addresses::AccountAddresses;
use crate::cluster::{BootTimeReader, ClusterLink, SlotTables};
use crate::fetch::{Fetch, FetchLimits};
use crate::importer::ask_panel;
use crate::tasks::{self, RespawnedTask};

/// Interval at which the tables are looked at.
const PERIOD: Duration = Duration::from_secs(1);

/// Longest wait for the answer of a panel. Shorter than the interval of questions.
const ANSWER_TIME: Duration = Duration::from_secs(4);

/// The leases of the cluster, as the questions need them.
#[derive(Clone)]
pub(crate) struct PanelCountParts {
    pub(crate) tables: watch::Receiver<SlotTables>,
    pub(crate) link: ClusterLink,
    pub(crate) clock: BootTimeReader,
}

/// The panels of account profiles.
pub(crate) trait PanelPort: Send + Sync {
    /// Returns whether the login of an account profile is one of a panel that can be asked.
    fn can_be_asked(&self, account: AccountId, profile: ProfileId) -> bool;

    /// Asks how many connections the login has. `None`: the panel did not say a plain number in time.
    fn ask(
        &self,
        account: AccountId,
        profile: ProfileId,
    ) -> Pin<Box<dyn Future<Output = Option<u32>> + Send + '_>>;
}

/// Starts to ask the panels of these accounts.
pub(crate) fn ask_panels(parts: PanelCountParts, models: Models, fetch: Fetch) -> RespawnedTask {
    let fetch = fetch.clone().within(limits(fetch.limits()));
    let port: Arc<dyn PanelPort> = Arc::new(Panels { models, fetch });
    tasks::respawn("questions to panels", move || follow(parts.clone(), Arc::clone(&port)))
}

/// Asks panels until the member of the cluster ends with the process.
pub(crate) async fn follow(parts: PanelCountParts, port: Arc<dyn PanelPort>) {
    let PanelCountParts { mut tables, link, clock } = parts;
    let mut counts = PanelCounts::default();
    loop {
        let (question, is_idle) = {
            let seen = tables.borrow_and_update();
            let now = clock.now();
            counts.see(seen.tables.values(), now);
            let may_ask = |account, profile| port.can_be_asked(account, profile);
            let process = seen.process.filter(|_| seen.is_member);
            let question = process.and_then(|it| counts.due(&seen.tables, it, &may_ask, now));
            (question, seen.tables.is_empty())
        };
        if let Some(question) = question {
            ask(&port, &question, &mut counts, &tables, &link, clock).await;
        }
        if is_idle {
            if tables.changed().await.is_err() {
                return;
            }
        } else if tables.has_changed().is_err() {
            return;
        } else {
            sleep(PERIOD).await;
        }
    }
}

/// Asks one question, and passes on what follows from the answer.
async fn ask(
    port: &Arc<dyn PanelPort>,
    question: &PanelQuestion,
    counts: &mut PanelCounts,
    tables: &watch::Receiver<SlotTables>,
    link: &ClusterLink,
    clock: BootTimeReader,
) {
    let PanelQuestion { pool, account, profile, .. } = *question;
    let count = timeout(ANSWER_TIME, port.ask(account, profile)).await.ok().flatten();
    let gone = {
        let seen = tables.borrow();
        let now = clock.now();
        counts.see(seen.tables.values(), now);
        counts.answered(question, count, seen.tables.get(&pool), now)
    };
    if let Some(leases) = gone {
        info!(
            account.id = %account, profile.id = %profile,
            "the panel shows that {} connections of a lost node are gone", leases.len()
        );
        link.send(NodeInput::ConnectionsGone { pool, leases });
    }
}

/// The panels of the accounts in a store.
struct Panels {
    models: Models,
    fetch: Fetch,
}

impl PanelPort for Panels {
    fn can_be_asked(&self, account: AccountId, profile: ProfileId) -> bool {
        let accounts = self.models.accounts.load();
        let account = accounts.get(account.0).filter(|it| it.is_active);
        let profile = account.and_then(|it| it.profiles.iter().find(|it| it.id == profile));
        profile.zip(account).is_some_and(|(it, account)| account.panel_login_of(it).is_some())
    }

    fn ask(
        &self,
        account: AccountId,
        profile: ProfileId,
    ) -> Pin<Box<dyn Future<Output = Option<u32>> + Send + '_>> {
        Box::pin(async move {
            let account = self.models.accounts.load().get(account.0).cloned()?;
            let profile = account.profiles.iter().find(|it| it.id == profile)?;
            let login = account.panel_login_of(profile)?;
            let login = AccountAddresses::new(self.models.clone()).login(&account, &login);
            match ask_panel(&self.fetch, &account, &login).await {
                Ok(answer) => answer.connections(),
                Err(error) => {
                    debug!(account.id = %account.id, "failed to ask the panel for its connections: {error}");
                    None
                }
            }
        })
    }
}

fn limits(limits: FetchLimits) -> FetchLimits {
    FetchLimits {
        connect_timeout: limits.connect_timeout.min(ANSWER_TIME),
        read_timeout: limits.read_timeout.min(ANSWER_TIME),
        total_timeout: limits.total_timeout.min(ANSWER_TIME),
        ..limits
    }
}
