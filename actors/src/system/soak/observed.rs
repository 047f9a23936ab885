//! The observed events, counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::event::EventBody;
use parking_lot::Mutex;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::task::AbortOnDropHandle;

use super::environment::Environment;

/// A subscriber that counts all events.
pub(super) struct ObservedEvents {
    counts: Arc<Mutex<Counted>>,
    _listening: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Counted {
    reconnects: BTreeMap<u128, u64>,
    failovers: BTreeMap<u128, u64>,
    switches: BTreeMap<u128, u64>,
    n_refreshes: u64,
    n_events: u64,
}

impl ObservedEvents {
    pub(super) fn listen(environment: &Environment) -> Self {
        let counts = Arc::new(Mutex::new(Counted::default()));
        let (mut line, into) = (environment.system().events().subscribe(), counts.clone());
        let listening = tokio::spawn(async move {
            loop {
                match line.recv().await {
                    Ok(event) => into.lock().count(&event.body),
                    Err(RecvError::Lagged(n)) => panic!("{n} events went by unheard"),
                    Err(RecvError::Closed) => return,
                }
            }
        });
        Self { counts, _listening: AbortOnDropHandle::new(listening) }
    }

    pub(super) fn n_reconnects(&self, number: u32) -> u64 {
        self.counts.lock().reconnects.get(&number.into()).copied().unwrap_or(0)
    }

    pub(super) fn n_failovers(&self, number: u32) -> u64 {
        self.counts.lock().failovers.get(&number.into()).copied().unwrap_or(0)
    }

    pub(super) fn n_switches(&self, number: u32) -> u64 {
        self.counts.lock().switches.get(&number.into()).copied().unwrap_or(0)
    }

    /// Returns the number of all events, and of refresh events.
    pub(super) fn n_events(&self) -> (u64, u64) {
        let counts = self.counts.lock();
        (counts.n_events, counts.n_refreshes)
    }

    /// Returns the number of its tasks.
    pub(super) fn n_tasks(&self) -> usize {
        1
    }
}

impl Counted {
    fn count(&mut self, body: &EventBody) {
        self.n_events += 1;
        let (of, channel) = match body {
            EventBody::ChannelReconnect { channel, .. } => (&mut self.reconnects, channel),
            EventBody::ChannelFailover { channel, .. } => (&mut self.failovers, channel),
            EventBody::StreamSwitch { channel, .. } => (&mut self.switches, channel),
            EventBody::M3uRefresh { .. } => {
                self.n_refreshes += 1;
                return;
            }
            _ => return,
        };
        *of.entry(channel.uuid.as_u128()).or_default() += 1;
    }
}
