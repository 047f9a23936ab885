//! Statistics of all live channels, with a frame for each audience.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use actors::{ChannelStatus, ClientStatus, Target};
use domain::channel::Channel;
use domain::lineup::{ViewLimits, visible};
use domain::time::iso_millis;
use node::status::NodeTotals;
use serde_json::{Value, json};
use storage::Table;
use tokio::time::Instant;
use uuid::Uuid;

use super::frames::update;

/// The channels whose clients an admin gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ClientsOf {
    /// The choice of a new socket.
    #[default]
    All,
    None,
    Channel(Uuid),
}

/// One reading. Built once and sent to all sessions.
#[derive(Debug)]
pub(super) struct Statistics {
    sequence: u64,
    at: String,
    /// Data for admins.
    all: Vec<AdminChannel>,
    totals: Value,
    /// The frames for admins with all clients and without clients, once somebody needs them.
    whole: OnceLock<String>,
    brief: OnceLock<String>,
    /// Data of each channel for users who are not admins.
    channels: Vec<(Uuid, Value)>,
}

/// A live channel as admins see it.
#[derive(Debug)]
struct AdminChannel {
    uuid: Uuid,
    /// Everything but the clients.
    data: Value,
    clients: Vec<Value>,
}

/// Computes statistics from each reading and the one before.
#[derive(Debug)]
pub(super) struct StatisticsReader {
    /// Tells what admins get about a channel beside what is measured here.
    view: fn(&ChannelStatus) -> Value,
    sequence: u64,
    read_at: Option<Instant>,
    channels: Rates<Target>,
    clients: Rates<u64>,
    all: Rates<(&'static str, Arc<str>)>,
}

impl StatisticsReader {
    pub(super) fn new(view: fn(&ChannelStatus) -> Value) -> Self {
        Self {
            view,
            sequence: 0,
            read_at: None,
            channels: Rates::default(),
            clients: Rates::default(),
            all: Rates::default(),
        }
    }

    /// Computes the statistics of the live channels. `at_ms` is the time `now` in milliseconds since 1970.
    pub(super) fn read(
        &mut self,
        mut statuses: Vec<(Target, ChannelStatus)>,
        nodes: &[(Arc<str>, NodeTotals)],
        table: &Table<Channel>,
        now: Instant,
        at_ms: i64,
    ) -> Statistics {
        let passed = self.read_at.replace(now).map(|it| now.saturating_duration_since(it));
        self.sequence += 1;
        statuses.sort_by(|a, b| (&a.1.name, a.0).cmp(&(&b.1.name, b.0)));
        let mut own = Vec::new();
        let mut all = Vec::with_capacity(statuses.len());
        for (target, status) in &statuses {
            let number = by_uuid(table, status.uuid).and_then(|it| it.number).map(|it| it.to_string());
            let channel = json!({
                "channel_id": status.uuid,
                "channel_name": status.name,
                "channel_number": number.unwrap_or_default(),
                "state": status.state,
                "uptime": status.uptime.as_secs(),
                "client_count": status.n_clients(),
            });
            let mut whole = channel.clone();
            let is_preview = matches!(target, Target::Stream(_));
            let clients: Vec<Value> = status.clients.iter().map(|it| self.client(it, passed)).collect();
            let more = json!({
                "is_preview": is_preview,
                "stream_id": status.playing,
                "title": status.title,
                "m3u_profile_id": status.profile,
                "discovered_max_streams": status.discovered_max_streams,
                "total_bytes": status.bytes_in,
                "bitrate_kbps": self.channels.kbps(*target, status.bytes_in, passed),
                "buffer_bytes": status.ring_bytes,
                "losses": status.n_losses,
                "failovers": status.n_failovers,
                "segments_read": status.input.segments_read,
                "segments_skipped": status.input.segments_skipped,
                "lost_datagrams": status.input.lost_datagrams,
                "waiting": status.n_waiting,
            });
            for members in [more, (self.view)(status)] {
                if let (Value::Object(whole), Value::Object(members)) = (&mut whole, members) {
                    whole.extend(members);
                }
            }
            if !status.nodes.is_empty() {
                whole["nodes"] = json!(status.nodes.iter().map(|it| &**it).collect::<Vec<_>>());
                whole["source_node"] = json!(status.node.as_ref().map(|it| &*it.origin));
            }
            all.push(AdminChannel { uuid: status.uuid, data: whole, clients });
            if !is_preview {
                own.push((status.uuid, channel));
            }
        }
        let sum = |of: fn(&NodeTotals) -> usize| nodes.iter().map(|it| of(&it.1)).sum::<usize>();
        // The rate of each node for itself: a node that comes or goes causes no jump.
        let mut rate = |name: &'static str, of: fn(&NodeTotals) -> u64| {
            let rates = nodes.iter().map(|(node, it)| self.all.kbps((name, node.clone()), of(it), passed));
            rates.flatten().reduce(u64::saturating_add)
        };
        let totals = json!({
            "client_count": sum(|it| it.clients),
            "connections_in_use": sum(|it| it.leases),
            "bitrate_in_kbps": rate("in", |it| it.bytes_in),
            "bitrate_out_kbps": rate("out", |it| it.bytes_out),
        });
        self.channels.advance();
        self.clients.advance();
        self.all.advance();
        let (sequence, at) = (self.sequence, iso_millis(at_ms));
        let (whole, brief) = (OnceLock::new(), OnceLock::new());
        Statistics { sequence, at, all, totals, whole, brief, channels: own }
    }

    fn client(&mut self, client: &ClientStatus, passed: Option<Duration>) -> Value {
        let mut shown = json!({
            "client_id": client.id.to_string(),
            "ip_address": client.address,
            "user_agent": client.agent,
            "output_format": client.format_name(),
            "output_profile": client.output_profile,
            "username": client.user.as_deref().unwrap_or_default(),
            "duration": client.watching.as_secs(),
            "bytes_sent": client.bytes,
            "bitrate_kbps": self.clients.kbps(client.id, client.bytes, passed),
            "missed_bytes": client.missed_bytes,
            "misses": client.misses,
        });
        if let Some(node) = &client.node {
            shown["node"] = json!(**node);
        }
        shown
    }
}

impl Statistics {
    /// Returns the frame with all data, and the clients of these channels.
    pub(super) fn for_admins(&self, clients: ClientsOf) -> String {
        let build = || {
            let channels = self.all.iter().map(|it| it.with_clients(clients)).collect();
            frame(self.sequence, &self.at, channels, Some(self.totals.clone()))
        };
        match clients {
            ClientsOf::All => self.whole.get_or_init(build).clone(),
            ClientsOf::None => self.brief.get_or_init(build).clone(),
            ClientsOf::Channel(_) => build(),
        }
    }

    /// Returns the frame with state and counts of the channels that are visible within these limits.
    pub(super) fn for_viewer(&self, limits: &ViewLimits, table: &Table<Channel>) -> String {
        let own = self.channels.iter().filter(|(uuid, _)| may_see(limits, table, *uuid));
        frame(self.sequence, &self.at, own.map(|it| it.1.clone()).collect(), None)
    }
}

impl AdminChannel {
    fn with_clients(&self, wanted: ClientsOf) -> Value {
        let mut data = self.data.clone();
        let is_wanted = match wanted {
            ClientsOf::All => true,
            ClientsOf::None => false,
            ClientsOf::Channel(uuid) => uuid == self.uuid,
        };
        if is_wanted {
            data["clients"] = Value::Array(self.clients.clone());
        }
        data
    }
}

/// Returns true if the channel with this uuid is visible within these limits.
pub(super) fn may_see(limits: &ViewLimits, table: &Table<Channel>, uuid: Uuid) -> bool {
    by_uuid(table, uuid).is_some_and(|it| visible(limits, it))
}

fn by_uuid(table: &Table<Channel>, uuid: Uuid) -> Option<&Channel> {
    table.one_by("uuid", uuid.as_bytes()).map(|it| &**it)
}

fn frame(sequence: u64, at: &str, channels: Vec<Value>, totals: Option<Value>) -> String {
    let mut stats = json!({ "count": channels.len(), "channels": channels });
    if let Some(totals) = totals {
        stats["totals"] = totals;
    }
    // Clients of the reference service parse a text.
    update(&json!({
        "type": "channel_stats", "success": true, "sequence": sequence, "timestamp": at, "stats": stats.to_string(),
    }))
}

/// Values of counters in the last reading. Older ones are dropped.
#[derive(Debug)]
struct Rates<K> {
    before: HashMap<K, u64>,
    now: HashMap<K, u64>,
}

impl<K> Default for Rates<K> {
    fn default() -> Self {
        Self { before: HashMap::new(), now: HashMap::new() }
    }
}

impl<K: Eq + Hash> Rates<K> {
    /// Returns kilobits per second since the last reading, or `None` without one. A counter that decreased belongs to a
    /// restarted channel or client and has counted from zero.
    fn kbps(&mut self, key: K, bytes: u64, passed: Option<Duration>) -> Option<u64> {
        let before = self.before.get(&key).copied();
        self.now.insert(key, bytes);
        let grown = before.map(|it| bytes.checked_sub(it).unwrap_or(bytes))?;
        let millis = u64::try_from(passed?.as_millis()).ok().filter(|it| *it > 0)?;
        // Bits per millisecond are kilobits per second.
        Some(grown.saturating_mul(8) / millis)
    }

    fn advance(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }
}

#[cfg(test)]
mod tests {
    use storage::Store;

    use super::*;

    #[test]
    fn the_statistics_are_a_text_that_clients_parse() {
        let store = Store::temporary(storage::records::schema()).unwrap();
        let channels = store.table::<Channel>().unwrap().load();
        let mut reader = StatisticsReader::new(|_| Value::Null);
        let statistics = reader.read(Vec::new(), &[], &channels, Instant::now(), 1_000);
        for (text, has_totals) in [
            (statistics.for_admins(ClientsOf::All), true),
            (statistics.for_viewer(&ViewLimits::none(), &channels), false),
        ] {
            let frame: Value = serde_json::from_str(&text).unwrap();
            let stats: Value = serde_json::from_str(frame["data"]["stats"].as_str().unwrap()).unwrap();
            assert_eq!((&stats["channels"], &stats["count"]), (&json!([]), &json!(0)), "{text}");
            assert_eq!(stats["totals"].is_object(), has_totals, "{text}");
        }
    }

    #[test]
    fn a_rate_covers_the_time_since_the_last_reading_and_restarted_counters_begin_at_zero() {
        let mut rates = Rates::default();
        let second = Some(Duration::from_secs(1));
        for (bytes, passed, expected) in [
            (1_000, None, None),
            (2_000, second, Some(8)),
            (2_000, second, Some(0)),
            (4_000, Some(Duration::from_millis(500)), Some(32)),
            (1_000, second, Some(8)),
            (1_500, Some(Duration::ZERO), None),
        ] {
            assert_eq!(rates.kbps("a", bytes, passed), expected, "{bytes}");
            rates.advance();
        }
        rates.advance();
        assert_eq!(rates.kbps("a", 9_000, second), None, "an entry that was missing once is new");
    }
}
