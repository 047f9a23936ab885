//! Integrations, the deliveries to them, and the log of these.

use domain::ids::IntegrationId;
use domain::integration::{
    Delivery, DeliveryLogEntry, Integration, IntegrationState, OutboxEvent, Recipient,
};
use domain::plugin::PluginSchedules;

use crate::error::Result;
use crate::record::{Keys, Record, Sharing};
use crate::write::Write;

impl Record for Integration {
    const COLLECTION: &'static str = "integrations";
    const SHARING: Sharing = Sharing::FullNodes;
    /// Addresses, headers and options contain keys of other services.
    const SEALED: bool = true;

    fn id(&self) -> u32 {
        self.id.0
    }
}

impl Record for IntegrationState {
    const COLLECTION: &'static str = "integration_states";
    const SHARING: Sharing = Sharing::FullNodes;
    const MAY_BE_MISSED: bool = true;

    /// The id of the integration.
    fn id(&self) -> u32 {
        self.id.0
    }
}

impl Record for Delivery {
    const COLLECTION: &'static str = "deliveries";
    const SHARING: Sharing = Sharing::Local;
    /// Addresses of streams contain logins of providers.
    const SEALED: bool = true;
    const WAS_PLAIN: bool = true;
    const MAY_BE_MISSED: bool = true;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn keys(&self, keys: &mut Keys) {
        recipient_key(self.to, keys);
    }
}

impl Record for DeliveryLogEntry {
    const COLLECTION: &'static str = "delivery_log";
    const SHARING: Sharing = Sharing::Local;
    const MAY_BE_MISSED: bool = true;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn keys(&self, keys: &mut Keys) {
        recipient_key(self.to, keys);
    }
}

impl Record for OutboxEvent {
    const COLLECTION: &'static str = "outbox_events";
    const SHARING: Sharing = Sharing::Local;
    /// Addresses of streams contain logins of providers.
    const SEALED: bool = true;
    const WAS_PLAIN: bool = true;
    const MAY_BE_MISSED: bool = true;

    fn id(&self) -> u32 {
        self.id
    }
}

/// Adds the index key of a delivery or an entry of the log.
fn recipient_key(to: Recipient, keys: &mut Keys) {
    let (index, value) = index_of(to);
    keys.plain(index, value);
}

fn index_of(to: Recipient) -> (&'static str, [u8; 4]) {
    match to {
        Recipient::Integration(id) => ("integration", id.0.to_be_bytes()),
        Recipient::Plugin(id) => ("plugin", id.to_be_bytes()),
    }
}

/// Removes an integration with its deliveries, its state and its log. Returns whether it existed.
pub fn remove_integration(write: &mut Write<'_>, id: IntegrationId) -> Result<bool> {
    remove_deliveries(write, Recipient::Integration(id))?;
    write.remove::<IntegrationState>(id.0)?;
    write.remove::<Integration>(id.0)
}

/// Removes what is stored for a plugin besides its record: its deliveries, its schedules and its log.
pub fn remove_runs_of_plugin(write: &mut Write<'_>, id: u32) -> Result<()> {
    remove_deliveries(write, Recipient::Plugin(id))?;
    write.remove::<PluginSchedules>(id).map(drop)
}

fn remove_deliveries(write: &mut Write<'_>, to: Recipient) -> Result<()> {
    let (index, value) = index_of(to);
    for delivery in write.by::<Delivery>(index, value)? {
        write.remove::<Delivery>(delivery.id.0)?;
    }
    for entry in write.by::<DeliveryLogEntry>(index, value)? {
        write.remove::<DeliveryLogEntry>(entry.id.0)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use domain::integration::{Script, Target};

    use super::*;
    use crate::store::Store;

    fn integration(id: u32) -> Integration {
        let script = Script { path: "/srv/run.sh".to_owned(), working_directory: None, timeout_s: 30 };
        Integration {
            id: IntegrationId(id),
            name: "Script".to_owned(),
            is_enabled: true,
            target: Target::Script(script),
            subscriptions: Vec::new(),
            parallel: 1,
            max_age_s: None,
            created_at: 0,
            is_trusted: false,
            digest_minutes: None,
        }
    }

    fn delivery(id: u32, integration: u32) -> Delivery {
        Delivery {
            id: domain::ids::DeliveryId(id),
            to: Recipient::Integration(IntegrationId(integration)),
            event_id: uuid::Uuid::nil(),
            event: "vod_stop".to_owned(),
            created_at: 0,
            payload: "{}".to_owned(),
            summary: String::new(),
            channel: None,
            n_attempts: 0,
            due_at: 0,
            reason: None,
            dead_at: None,
            run: None,
            n_crashes: 0,
            passed_run: None,
            addresses: Default::default(),
        }
    }

    #[test]
    fn a_removed_integration_leaves_nothing_behind_and_the_others_stay() {
        let store = Store::temporary(crate::records::schema()).unwrap();
        let done = store.write_blocking(|write| {
            for id in [1, 2] {
                write.put(&integration(id))?;
                write.put(&IntegrationState {
                    id: IntegrationId(id),
                    failing_since: Some(1),
                    paused: None,
                })?;
                write.put(&delivery(id, id))?;
                write.put(&delivery(10 + id, id))?;
            }
            Ok::<_, crate::Error>(())
        });
        done.unwrap();
        let removed = store.write_blocking(|write| remove_integration(write, IntegrationId(1)));
        assert!(removed.unwrap());
        assert_eq!(store.collection::<Integration>().ids(), [2]);
        assert_eq!(store.collection::<IntegrationState>().ids(), [2]);
        assert_eq!(store.collection::<Delivery>().ids(), [2, 12]);
        let removed = store.write_blocking(|write| remove_integration(write, IntegrationId(1)));
        assert!(!removed.unwrap());
    }

    #[test]
    fn a_removed_plugin_leaves_no_runs_and_no_schedules_behind() {
        let store = Store::temporary(crate::records::schema()).unwrap();
        let done = store.write_blocking(|write| {
            // An integration with the same id is something else.
            write.put(&delivery(1, 3))?;
            write.put(&Delivery { to: Recipient::Plugin(3), ..delivery(2, 3) })?;
            write.put(&Delivery { to: Recipient::Plugin(4), ..delivery(3, 4) })?;
            write.put(&PluginSchedules::none(3))?;
            write.put(&PluginSchedules::none(4))?;
            remove_runs_of_plugin(write, 3)
        });
        done.unwrap();
        assert_eq!(store.collection::<Delivery>().ids(), [1, 3]);
        assert_eq!(store.collection::<PluginSchedules>().ids(), [4]);
    }
}
