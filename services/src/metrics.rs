//! `/metrics`: the gateway's counters in the OpenMetrics text format of Prometheus.
//!
//! This module counts nothing itself. Each scrape builds a registry from one reading of the existing counters, so
//! several gateways can run in one process.

use std::fmt;
use std::sync::Arc;

use actors::{ClusterView, DeliveryCounts, DurationCounts, MetricsSnapshot, NodeState, SlotsSnapshot};
use domain::account::Account;
use domain::ids::GuideSourceId;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use server::admission::Admission;
use storage::{Models, Store, StoreStatistics};

use crate::slots;

/// Renders one reading of the counters as text.
pub fn text(reading: Reading) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("headwater");
    registry.register_collector(Box::new(reading));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

/// The state of the store.
#[derive(Clone, Copy, Debug)]
pub struct StoreReading {
    is_writable: bool,
    statistics: StoreStatistics,
}

impl StoreReading {
    /// Lists the files of the database, so it blocks.
    pub fn from_store(store: &Store) -> Self {
        Self { is_writable: store.stop_reason().borrow().is_none(), statistics: store.statistics() }
    }
}

/// The slots of an account, and its last refresh. Each account is a label, so their number is that of the records.
#[derive(Clone, Debug)]
pub struct AccountReading {
    name: String,
    n_used: u64,
    /// Sum over the active profiles; `None` if one of them has no limit.
    n_free: Option<u64>,
    /// End of the last successful refresh, in seconds since 1970.
    good_at: Option<u64>,
}

impl AccountReading {
    /// Reads all active accounts.
    pub fn all(models: &Models, slots: &SlotsSnapshot) -> Vec<Self> {
        let refreshes = models.refreshes.load();
        let reading = |account: &Account| {
            let profiles = account.profiles.iter().filter(|it| it.is_active);
            let free = profiles.map(|it| {
                let limit = slots::limit(slots, account, it);
                slots::free(limit, slots::n_used(slots, |_, profile| profile == it.id))
            });
            Self {
                name: account.name.clone(),
                n_used: slots::n_used(slots, |it, _| it == account.id) as u64,
                n_free: free.map(|it| it.map(|it| it as u64)).sum(),
                good_at: refreshes.get(account.id.0).and_then(|it| it.good_at).and_then(seconds),
            }
        };
        let accounts = models.accounts.load();
        accounts.iter().filter(|it| it.is_active && !it.is_custom()).map(|it| reading(it)).collect()
    }
}

/// The last refresh of a guide source.
#[derive(Clone, Debug)]
pub struct GuideReading {
    name: String,
    /// End of the last successful refresh, in seconds since 1970.
    good_at: Option<u64>,
}

impl GuideReading {
    /// Reads all active guide sources.
    pub fn all(models: &Models) -> Vec<Self> {
        let states = models.guide_states.load();
        let good_at = |id: GuideSourceId| states.get(id.0).and_then(|it| it.good_at).and_then(seconds);
        let sources = models.guide_sources.load();
        let active = sources.iter().filter(|it| it.is_active);
        active.map(|it| Self { name: it.name.clone(), good_at: good_at(it.id) }).collect()
    }
}

/// Returns a time in seconds since 1970; `None` if it is before.
fn seconds(milliseconds: i64) -> Option<u64> {
    u64::try_from(milliseconds.div_euclid(1000)).ok()
}

/// Everything that a page of metrics shows.
#[derive(Debug)]
pub struct Reading {
    pub counts: MetricsSnapshot,
    pub store: StoreReading,
    pub admission: Arc<Admission>,
    pub failed_logins: u64,
    pub accounts: Vec<AccountReading>,
    pub guides: Vec<GuideReading>,
    pub deliveries: DeliveryCounts,
    /// `None` without a cluster.
    pub cluster: Option<Arc<ClusterView>>,
}

/// The states of nodes that have a value of their own.
const NODE_STATES: [NodeState; 5] =
    [NodeState::Joining, NodeState::Alive, NodeState::Expired, NodeState::Left, NodeState::Unknown];

fn cluster(page: &mut Page<'_>, view: &ClusterView) -> fmt::Result {
    let is_connected = u64::from(view.disconnected.is_none());
    page.gauge(
        "cluster_connected",
        "1 if this node reaches the NATS servers of its cluster, otherwise 0",
        is_connected,
    )?;
    let is_member = view.own().is_some_and(|it| it.state == NodeState::Alive);
    page.gauge("cluster_member", "1 if this node is a member of its cluster, otherwise 0", is_member.into())?;
    let count = |state| view.nodes.iter().filter(|it| it.state == state).count() as u64;
    let nodes = NODE_STATES.map(|it| ([("state", it.as_str())], count(it)));
    page.each("cluster_nodes", "Nodes of the cluster, by state", ConstGauge::new, nodes)
}

impl Collector for Reading {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let counts = &self.counts;
        let mut page = Page(encoder);
        let version = [([("version", env!("CARGO_PKG_VERSION"))], 1)];
        page.each("build_info", "The version of the gateway; always 1", ConstGauge::new, version)?;
        page.gauge("leases", "Leases of provider slots, including those being closed", counts.leases as u64)?;
        page.gauge("leases_closing", "Leases whose socket is being closed", counts.leases_closing as u64)?;
        page.gauge("upstream_sockets", "Open sockets to providers", counts.sockets_open as u64)?;
        page.gauge("live_channels", "Channels being watched", counts.channels as u64)?;
        page.gauge("clients", "Clients watching a channel", counts.clients as u64)?;
        page.gauge("seats", "Sessions of users; each holds one seat", counts.seats as u64)?;
        let transcoders = u64::from(counts.transcoders);
        page.gauge("transcoders", "Programs that convert streams for output profiles", transcoders)?;
        page.bytes("received", "Bytes received from providers", counts.bytes_in)?;
        page.counter("segments_read", "Segments of HLS read from providers", counts.input.segments_read)?;
        page.counter(
            "segments_skipped",
            "Segments of HLS that were not available, or left the playlist before they could be read",
            counts.input.segments_skipped,
        )?;
        page.counter(
            "datagrams_lost",
            "Datagrams that the network lost on the way from providers, as far as they are numbered",
            counts.input.lost_datagrams,
        )?;
        page.bytes("sent", "Bytes handed to clients", counts.bytes_out)?;
        page.counter("client_misses", "Times a client fell behind the ring buffer", counts.misses)?;
        page.bytes(
            "client_missed",
            "Bytes that clients skipped because they fell behind",
            counts.missed_bytes,
        )?;
        page.counter("losses", "Streams that failed to open, and sources lost", counts.losses())?;
        page.counter("failovers", "Changes to another stream after a loss", counts.failovers)?;
        page.counter("reconnects", "Reconnections to the same stream after a loss", counts.reconnects)?;
        page.counter(
            "speculative_openings",
            "Streams opened beside a silent one",
            counts.speculative_openings,
        )?;
        page.counter("switches", "Changes of stream on request", counts.switches)?;
        page.counter("channel_starts", "Channels started", counts.channel_starts)?;
        page.counter("refused_full", "Requests refused because an account was full", counts.refused_full)?;
        page.counter(
            "refused_seats",
            "Requests refused because a user had no free seat",
            counts.refused_seats,
        )?;
        page.gauge("vod_sessions", "Films and episodes being watched", counts.vod_sessions as u64)?;
        page.counter("vod_starts", "Films and episodes that viewers began", counts.vod_starts)?;
        page.bytes("vod_received", "Bytes of films received from providers", counts.vod_bytes_in)?;
        page.bytes("vod_sent", "Bytes of films handed to clients", counts.vod_bytes_out)?;
        page.gauge(
            "vod_cache_bytes",
            "Memory with beginnings and ends of films, in bytes",
            counts.vod_cache_bytes as u64,
        )?;
        page.gauge(
            "ring_bytes",
            "Memory in ring buffers of live channels, in bytes",
            counts.ring_bytes as u64,
        )?;
        page.histogram(
            "channel_start",
            "Time from the first request for a channel to its first packets",
            &counts.starts,
        )?;
        page.histogram("gap", "Time that viewers missed at a reconnect or a failover", &counts.gaps)?;
        page.each(
            "source_failures",
            "Streams that failed to open, and sources lost, by cause",
            ConstCounter::new,
            counts.losses_by_cause.iter().map(|(cause, n)| ([("cause", *cause)], *n)),
        )?;
        self.accounts(&mut page)?;
        let deliveries = self.deliveries;
        page.gauge(
            "deliveries_waiting",
            "Events that wait for integrations and plugins",
            deliveries.n_waiting as u64,
        )?;
        page.gauge("dead_letters", "Events that could not be delivered", deliveries.n_dead as u64)?;
        page.counter(
            "events_lost",
            "Events that no integration got, because too many waited for the disk",
            deliveries.n_lost,
        )?;
        page.counter(
            "deliveries_overflowed",
            "Deliveries that became dead letters, because too many waited for their target",
            deliveries.n_overflowed,
        )?;
        page.counter("failed_logins", "Failed logins of users", self.failed_logins)?;
        if let Some(view) = &self.cluster {
            cluster(&mut page, view)?;
        }

        page.gauge("connections", "Open client connections", self.admission.n_open() as u64)?;
        page.counter("connections_accepted", "Connections accepted", self.admission.n_accepted())?;
        page.counter(
            "connections_refused",
            "Connections refused over the limit",
            self.admission.n_refused(),
        )?;
        self.store(&mut page)?;
        page.gauge(
            "programs_restricted",
            "Whether the kernel restricts the files that programs can access (Landlock)",
            media::can_restrict_files().into(),
        )?;
        if let Some(process) = Process::read() {
            page.gauge("process_resident_bytes", "Resident memory of this process", process.resident_bytes)?;
            page.gauge("process_open_files", "Open file descriptors of this process", process.n_open_files)?;
        }
        Ok(())
    }
}

impl Reading {
    fn accounts(&self, page: &mut Page<'_>) -> fmt::Result {
        let accounts = || self.accounts.iter();
        page.each(
            "account_slots_used",
            "Provider slots of an account in use, closing or cooling",
            ConstGauge::new,
            accounts().map(|it| ([("account", it.name.as_str())], it.n_used)),
        )?;
        page.each(
            "account_slots_free",
            "Free provider slots of an account; missing without a limit",
            ConstGauge::new,
            accounts().filter_map(|it| Some(([("account", it.name.as_str())], it.n_free?))),
        )?;
        page.each(
            "account_refreshed_timestamp_seconds",
            "Time of the last successful refresh of an account, in seconds since 1970",
            ConstGauge::new,
            accounts().filter_map(|it| Some(([("account", it.name.as_str())], it.good_at?))),
        )?;
        page.each(
            "guide_refreshed_timestamp_seconds",
            "Time of the last successful refresh of a guide source, in seconds since 1970",
            ConstGauge::new,
            self.guides.iter().filter_map(|it| Some(([("source", it.name.as_str())], it.good_at?))),
        )
    }

    fn store(&self, page: &mut Page<'_>) -> fmt::Result {
        let StoreReading { is_writable, statistics } = &self.store;
        page.gauge(
            "store_writable",
            "1 while the store accepts changes, 0 while it refuses them",
            u64::from(*is_writable),
        )?;
        page.gauge("store_disk_bytes", "Size of the database on the disk, in bytes", statistics.disk_bytes)?;
        page.gauge(
            "store_live_bytes",
            "Size of the current records in the database, in bytes",
            statistics.live_bytes,
        )?;
        page.gauge(
            "store_set_aside",
            "Damaged records and blocks that were set aside until they are fetched again",
            statistics.n_set_aside as u64,
        )?;
        page.gauge(
            "store_hanging_seconds",
            "Time for which the present operation of the disk has not returned, if it hangs",
            statistics.hanging_for.as_secs(),
        )?;
        page.gauge(
            "store_compacting",
            "1 while the database is copied to a new one without overwritten records",
            statistics.is_compacting.into(),
        )?;
        page.counter(
            "store_compactions",
            "Times the database was replaced by such a copy since the start",
            statistics.n_compactions,
        )?;
        page.gauge(
            "store_last_commit_age_seconds",
            "Time since the last change was stored, or since the start",
            statistics.last_commit_age.as_secs(),
        )
    }
}

/// Writes metrics one after another.
struct Page<'a>(DescriptorEncoder<'a>);

impl Page<'_> {
    fn gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.one(name, help, None, &ConstGauge::new(value))
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.one(name, help, None, &ConstCounter::new(value))
    }

    fn bytes(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.one(name, help, Some(&Unit::Bytes), &ConstCounter::new(value))
    }

    fn one(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        metric: &impl EncodeMetric,
    ) -> fmt::Result {
        metric.encode(self.0.encode_descriptor(name, help, unit, metric.metric_type())?)
    }

    /// One metric, made by `new`, for each label.
    fn each<'a, M: EncodeMetric>(
        &mut self,
        name: &str,
        help: &str,
        new: impl Fn(u64) -> M,
        values: impl IntoIterator<Item = ([(&'a str, &'a str); 1], u64)>,
    ) -> fmt::Result {
        // The type is written even if there are no values.
        let mut encoder = self.0.encode_descriptor(name, help, None, new(0).metric_type())?;
        values.into_iter().try_for_each(|(label, value)| new(value).encode(encoder.encode_family(&label)?))
    }

    /// The encoder takes the count of each single bucket and accumulates them itself.
    fn histogram(&mut self, name: &str, help: &str, counts: &DurationCounts) -> fmt::Result {
        let mut below = 0;
        let mut buckets: Vec<(f64, u64)> = Vec::with_capacity(counts.buckets.len() + 1);
        for (bound, cumulative) in &counts.buckets {
            buckets.push((*bound, cumulative.saturating_sub(below)));
            below = *cumulative;
        }
        buckets.push((f64::INFINITY, counts.count.saturating_sub(below)));
        let mut encoder =
            self.0.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
        encoder.encode_histogram::<prometheus_client::encoding::NoLabelSet>(
            counts.sum_seconds,
            counts.count,
            &buckets,
            None,
        )
    }
}

/// Resource usage of this process.
struct Process {
    resident_bytes: u64,
    n_open_files: u64,
}

impl Process {
    /// Returns `None` on systems without `/proc`.
    fn read() -> Option<Process> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"))?;
        let kib: u64 = line.trim().trim_end_matches("kB").trim_end().parse().ok()?;
        // One of them is the directory being listed.
        let n_open_files = std::fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1) as u64;
        Some(Process { resident_bytes: kib << 10, n_open_files })
    }
}

#[cfg(test)]
mod tests {
    use media::InputCounts;
    use storage::Schema;

    use super::*;

    fn reading(counts: MetricsSnapshot, store: &Store) -> Reading {
        Reading {
            counts,
            store: StoreReading::from_store(store),
            admission: Admission::new(0, 0),
            failed_logins: 3,
            accounts: Vec::new(),
            guides: Vec::new(),
            deliveries: DeliveryCounts::default(),
            cluster: None,
        }
    }

    fn text(counts: MetricsSnapshot) -> String {
        let store = Store::temporary(Schema::new()).unwrap();
        super::text(reading(counts, &store)).unwrap()
    }

    #[track_caller]
    fn has(text: &str, line: &str) {
        assert!(text.lines().any(|it| it == line), "`{line}` is missing in:\n{text}");
    }

    #[test]
    fn a_scrape_contains_the_counters() {
        let text = text(MetricsSnapshot {
            leases: 3,
            leases_closing: 1,
            clients: 7,
            failovers: 2,
            bytes_in: 1000,
            input: InputCounts { segments_read: 40, segments_skipped: 1, lost_datagrams: 2 },
            ..MetricsSnapshot::default()
        });
        has(&text, "headwater_leases 3");
        has(&text, "headwater_leases_closing 1");
        has(&text, "headwater_clients 7");
        has(&text, "headwater_failovers_total 2");
        has(&text, "headwater_received_bytes_total 1000");
        has(&text, "headwater_segments_read_total 40");
        has(&text, "headwater_segments_skipped_total 1");
        has(&text, "headwater_datagrams_lost_total 2");
        has(&text, "headwater_connections 0");
        has(&text, "headwater_failed_logins_total 3");
        has(&text, &format!("headwater_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION")));
        has(&text, "headwater_store_writable 1");
        has(&text, "headwater_store_live_bytes 0");
        has(&text, "headwater_store_last_commit_age_seconds 0");
        assert!(text.contains("headwater_process_resident_bytes "), "{text}");
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn accounts_and_causes_are_labels() {
        let store = Store::temporary(Schema::new()).unwrap();
        let counts = MetricsSnapshot {
            losses_by_cause: [("stall", 2), ("connect", 1)].into(),
            ..MetricsSnapshot::default()
        };
        let account = |name: &str, n_free, good_at| AccountReading {
            name: name.to_owned(),
            n_used: 1,
            n_free,
            good_at,
        };
        let mut reading = reading(counts, &store);
        reading.accounts = vec![account("A \"1\"\n", Some(2), Some(1_700_000_000)), account("B", None, None)];
        reading.guides = vec![GuideReading { name: "G".to_owned(), good_at: Some(5) }];
        let text = super::text(reading).unwrap();
        has(&text, "headwater_source_failures_total{cause=\"stall\"} 2");
        has(&text, "headwater_account_slots_used{account=\"A \\\"1\\\"\\n\"} 1");
        has(&text, "headwater_account_slots_free{account=\"A \\\"1\\\"\\n\"} 2");
        has(&text, "headwater_account_slots_used{account=\"B\"} 1");
        has(&text, "headwater_account_refreshed_timestamp_seconds{account=\"A \\\"1\\\"\\n\"} 1700000000");
        has(&text, "headwater_guide_refreshed_timestamp_seconds{source=\"G\"} 5");
        assert!(!text.contains("slots_free{account=\"B\"}"), "{text}");
    }

    #[test]
    fn start_times_are_a_histogram_whose_buckets_add_up() {
        let starts = DurationCounts { buckets: vec![(0.5, 2), (1.0, 5)], sum_seconds: 9.5, count: 6 };
        let text = text(MetricsSnapshot { starts, ..MetricsSnapshot::default() });
        has(&text, "headwater_channel_start_seconds_bucket{le=\"0.5\"} 2");
        has(&text, "headwater_channel_start_seconds_bucket{le=\"1.0\"} 5");
        has(&text, "headwater_channel_start_seconds_bucket{le=\"+Inf\"} 6");
        has(&text, "headwater_channel_start_seconds_count 6");
        has(&text, "headwater_channel_start_seconds_sum 9.5");
    }
}
