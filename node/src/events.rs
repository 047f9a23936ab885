//! Events of this node for the integrations and plugins, which the node that writes the configuration delivers to, and what
//! this node has learnt about the addresses of accounts.
//!
//! They stay in the store of this node until that node has answered. Between a loss and the answer of the next writer they
//! wait; a part whose answer is lost is sent again.

use std::collections::BTreeMap;

use actors::{AccountAddresses, Configuration, ConfigurationView, Integrations};
use bytes::Bytes;
use domain::account_addresses::AddressRecord;
use domain::cluster::record::NodeId;
use domain::ids::AccountId;
use domain::integration::{Delivery, OutboxEvent, PassedEvents};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request};
use http_body_util::Full;
use serde::{Deserialize, Serialize};
use storage::log::LogStatus;
use storage::{ChangeMessage, Changes, Record, Store};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{info, warn};

use super::peers::OtherNodes;
use super::time_limits::{EVENTS_ANSWER_TIMEOUT, EVENTS_RETRY_PAUSE, EVENTS_RETRY_PAUSE_MAX, GATHER_TIME};

/// Path on the node port.
pub(super) const EVENTS_PATH: &str = "/node/v1/events";
/// Maximum size of what is passed on together.
pub(super) const EVENTS_BYTES_MAX: usize = 32 << 20;
/// Maximum size of an answer.
const ANSWER_BYTES_MAX: usize = 4 << 10;

/// Events and addresses that are passed on together.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Passed {
    #[serde(flatten)]
    pub(super) events: PassedEvents,
    #[serde(default)]
    pub(super) addresses: Vec<AddressRecord>,
}

/// Passes the events of this node on while another one delivers.
pub(super) struct EventPasser {
    pub(super) integrations: Integrations,
    pub(super) addresses: AccountAddresses,
    pub(super) store: Store,
    pub(super) configuration: std::sync::Arc<Configuration>,
    pub(super) others: OtherNodes,
}

/// The changes for which the passer waits.
struct Signals {
    changes: Changes,
    status: watch::Receiver<Option<LogStatus>>,
    log: watch::Receiver<ConfigurationView>,
    learnt: watch::Receiver<BTreeMap<AccountId, AddressRecord>>,
}

/// The reason why the passer looks again.
enum Wake {
    /// There may be something to pass on.
    Changed,
    /// Another node writes, or this one does.
    Role,
    /// The store was closed.
    Closed,
}

impl EventPasser {
    /// Runs until the store is closed.
    pub(super) async fn run(self) {
        let mut signals = Signals {
            changes: self.store.changes(),
            status: self.store.log_status(),
            log: self.configuration.changes(),
            learnt: self.addresses.learnt(),
        };
        let (mut pause, mut retry_at) = (EVENTS_RETRY_PAUSE, None);
        let mut is_reported = false;
        loop {
            let (delivers, writer) = (self.store.writes_shared(), self.writer());
            signals.status.mark_unchanged();
            signals.log.mark_unchanged();
            signals.learnt.mark_unchanged();
            if delivers {
                self.take_own().await;
            }
            let may_try = retry_at.is_none_or(|at| at <= Instant::now());
            if let Some(writer) = writer.filter(|_| !delivers && may_try && self.has_some()) {
                match self.pass(writer).await {
                    Ok(n) => {
                        if std::mem::take(&mut is_reported) {
                            info!(events = n, "events reach the node that delivers them again");
                        }
                        (pause, retry_at) = (EVENTS_RETRY_PAUSE, None);
                        if n > 0 {
                            continue;
                        }
                    }
                    Err(reason) => {
                        if !std::mem::replace(&mut is_reported, true) {
                            warn!(
                                "events wait, because the node that delivers them does not take them: {reason}"
                            );
                        }
                        retry_at = Some(Instant::now() + pause);
                        pause = (pause * 2).min(EVENTS_RETRY_PAUSE_MAX);
                    }
                }
            }
            match self.woken(&mut signals, retry_at, (delivers, writer)).await {
                Wake::Closed => return,
                Wake::Role => (pause, retry_at) = (EVENTS_RETRY_PAUSE, None),
                Wake::Changed => {}
            }
        }
    }

    /// Returns the node that writes, if it is another one.
    fn writer(&self) -> Option<NodeId> {
        self.configuration.view().writer.map(|it| it.0)
    }

    fn has_some(&self) -> bool {
        !self.store.collection::<OutboxEvent>().is_empty()
            || !self.store.collection::<Delivery>().is_empty()
            || !self.addresses.learnt().borrow().is_empty()
    }

    /// Stores what this node has learnt about addresses before it wrote.
    async fn take_own(&self) {
        let addresses: Vec<_> = self.addresses.learnt().borrow().values().cloned().collect();
        if !addresses.is_empty() && self.addresses.take(addresses.clone()).await.is_ok() {
            self.addresses.forget(&addresses);
        }
    }

    /// Passes a part on. Returns how many it had.
    async fn pass(&self, writer: NodeId) -> Result<usize, String> {
        let events = self.integrations.to_pass_on().await.map_err(|it| it.to_string())?;
        let addresses: Vec<_> = self.addresses.learnt().borrow().values().cloned().collect();
        let n = events.len() + addresses.len();
        if n == 0 {
            return Ok(0);
        }
        let passed = Passed { events, addresses };
        let node = self.others.running().into_iter().find(|it| it.id == writer);
        let node = node.ok_or("it is not there")?;
        let body = serde_json::to_vec(&passed).map_err(|it| it.to_string())?;
        let request = Request::builder().method(Method::POST).uri(EVENTS_PATH);
        let request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let request = request.body(Full::new(Bytes::from(body))).map_err(|it| it.to_string())?;
        let answer =
            timeout(EVENTS_ANSWER_TIMEOUT, self.others.exchange(&node, request, ANSWER_BYTES_MAX)).await;
        answer.unwrap_or_else(|_| Err("no answer in time".to_owned()))?;
        self.addresses.forget(&passed.addresses);
        self.integrations.passed_on(passed.events).await.map_err(|it| it.to_string())?;
        Ok(n)
    }

    /// Waits until there may be something to pass on, or until a time.
    async fn woken(
        &self,
        Signals { changes, status, log, learnt }: &mut Signals,
        retry_at: Option<Instant>,
        before: (bool, Option<NodeId>),
    ) -> Wake {
        let retry = async {
            match retry_at {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let mut retry = std::pin::pin!(retry);
        loop {
            if (self.store.writes_shared(), self.writer()) != before {
                return Wake::Role;
            }
            tokio::select! {
                message = changes.next() => match message {
                    ChangeMessage::Closed => return Wake::Closed,
                    ChangeMessage::Changed(it) if !is_about_events(&it) => {}
                    ChangeMessage::Changed(_) | ChangeMessage::Lagged => break,
                },
                changed = status.changed() => if changed.is_err() {
                    return Wake::Closed;
                },
                changed = log.changed() => if changed.is_err() {
                    return Wake::Closed;
                },
                changed = learnt.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return Wake::Closed,
                },
                () = &mut retry => return Wake::Changed,
            }
        }
        sleep(GATHER_TIME).await;
        while changes.try_next().is_some() {}
        Wake::Changed
    }
}

fn is_about_events(change: &storage::Change) -> bool {
    change.ids(OutboxEvent::COLLECTION).is_some() || change.ids(Delivery::COLLECTION).is_some()
}

/// Reads what another node passes on. An edge node passes on events only: it never writes, has no accounts, and a delivery can
/// run anything. `None` if it is not valid.
pub(super) fn read(body: &[u8], is_edge: bool) -> Option<Passed> {
    let passed: Passed = serde_json::from_slice(body).ok()?;
    let is_allowed = !is_edge || passed.events.deliveries.is_empty() && passed.addresses.is_empty();
    is_allowed.then_some(passed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rubbish_and_deliveries_of_edge_nodes_are_refused() {
        let event = json!({
            "id": 1, "event_id": uuid::Uuid::nil(), "event": "vod_stop", "created_at": 5, "payload": "{}", "summary": "",
        });
        let delivery = json!({
            "id": 1, "plugin": 4, "event_id": uuid::Uuid::nil(), "event": "schedule", "created_at": 5, "payload": "{}",
            "summary": "", "due_at": 5,
        });
        let events = json!({ "events": [event] }).to_string();
        let both = json!({ "events": [event], "deliveries": [delivery] }).to_string();
        let n = |body: &str, is_edge| {
            read(body.as_bytes(), is_edge).map(|it| it.events.len() + it.addresses.len())
        };
        assert_eq!((n(&events, true), n(&events, false)), (Some(1), Some(1)));
        assert_eq!((n(&both, true), n(&both, false)), (None, Some(2)));
        let addresses = json!({ "addresses": [{ "account": 1 }] }).to_string();
        assert_eq!((n(&addresses, true), n(&addresses, false)), (None, Some(1)));
        for rubbish in ["", "7", "[", r#"{"events":[{"id":1}]}"#] {
            assert_eq!(n(rubbish, false), None, "{rubbish}");
        }
    }
}
