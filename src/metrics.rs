//! `/metrics`: the gateway's counters in the OpenMetrics text format of Prometheus.
//!
//! This module counts nothing itself. Each scrape builds a registry from one reading of the existing counters, so
//! several gateways can run in one process.

use std::fmt;
use std::sync::Arc;

use actors::MetricsSnapshot;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use storage::{Store, StoreStatistics};

use crate::http::admission::Admission;

/// Renders one reading of the counters as text.
pub(crate) fn text(
    counts: MetricsSnapshot,
    store: StoreReading,
    admission: Arc<Admission>,
) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("headwater");
    registry.register_collector(Box::new(Reading { counts, store, admission }));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

/// The state of the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreReading {
    is_writable: bool,
    statistics: StoreStatistics,
}

impl StoreReading {
    /// Lists the files of the database, so it blocks.
    pub(crate) fn of(store: &Store) -> Self {
        Self { is_writable: store.stop_reason().borrow().is_none(), statistics: store.statistics() }
    }
}

#[derive(Debug)]
struct Reading {
    counts: MetricsSnapshot,
    store: StoreReading,
    admission: Arc<Admission>,
}

impl Collector for Reading {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let counts = &self.counts;
        let mut page = Page(encoder);
        page.gauge("leases", "Leases of provider slots, including those being closed", counts.leases as u64)?;
        page.gauge("leases_closing", "Leases whose socket is being closed", counts.leases_closing as u64)?;
        page.gauge("upstream_sockets", "Open sockets to providers", counts.sockets_open as u64)?;
        page.gauge("live_channels", "Channels being watched", counts.channels as u64)?;
        page.gauge("clients", "Clients watching a channel", counts.clients as u64)?;
        page.gauge("seats", "Sessions of users; each holds one seat", counts.seats as u64)?;
        let transcoders = u64::from(counts.transcoders);
        page.gauge("transcoders", "Programs that convert streams for output profiles", transcoders)?;
        page.bytes("received", "Bytes received from providers", counts.bytes_in)?;
        page.bytes("sent", "Bytes handed to clients", counts.bytes_out)?;
        page.counter("client_misses", "Times a client fell behind the ring buffer", counts.misses)?;
        page.bytes(
            "client_missed",
            "Bytes that clients skipped because they fell behind",
            counts.missed_bytes,
        )?;
        page.counter("losses", "Sources lost", counts.losses)?;
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
        page.gauge(
            "ring_bytes",
            "Memory in ring buffers of live channels, in bytes",
            counts.ring_bytes as u64,
        )?;
        page.start_times(counts)?;

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
        let encoder = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(encoder)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let encoder = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value).encode(encoder)
    }

    fn bytes(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let encoder = self.0.encode_descriptor(name, help, Some(&Unit::Bytes), MetricType::Counter)?;
        ConstCounter::new(value).encode(encoder)
    }

    /// The encoder takes the count of each single bucket and accumulates them itself.
    fn start_times(&mut self, counts: &MetricsSnapshot) -> fmt::Result {
        let starts = &counts.starts;
        let mut below = 0;
        let mut buckets: Vec<(f64, u64)> = Vec::with_capacity(starts.buckets.len() + 1);
        for (bound, cumulative) in &starts.buckets {
            buckets.push((*bound, cumulative.saturating_sub(below)));
            below = *cumulative;
        }
        buckets.push((f64::INFINITY, starts.count.saturating_sub(below)));
        let help = "Time from the first request for a channel to its first packets";
        let name = "channel_start";
        let mut encoder =
            self.0.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
        encoder.encode_histogram::<prometheus_client::encoding::NoLabelSet>(
            starts.sum_seconds,
            starts.count,
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
    use actors::StartTimes;
    use storage::Schema;

    use super::*;

    fn text(counts: MetricsSnapshot) -> String {
        let store = Store::temporary(Schema::new()).unwrap();
        super::text(counts, StoreReading::of(&store), Admission::new(0, 0)).unwrap()
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
            ..MetricsSnapshot::default()
        });
        has(&text, "headwater_leases 3");
        has(&text, "headwater_leases_closing 1");
        has(&text, "headwater_clients 7");
        has(&text, "headwater_failovers_total 2");
        has(&text, "headwater_received_bytes_total 1000");
        has(&text, "headwater_connections 0");
        has(&text, "headwater_store_writable 1");
        has(&text, "headwater_store_live_bytes 0");
        has(&text, "headwater_store_last_commit_age_seconds 0");
        assert!(text.contains("headwater_process_resident_bytes "), "{text}");
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn start_times_are_a_histogram_whose_buckets_add_up() {
        let starts = StartTimes { buckets: vec![(0.5, 2), (1.0, 5)], sum_seconds: 9.5, count: 6 };
        let text = text(MetricsSnapshot { starts, ..MetricsSnapshot::default() });
        has(&text, "headwater_channel_start_seconds_bucket{le=\"0.5\"} 2");
        has(&text, "headwater_channel_start_seconds_bucket{le=\"1.0\"} 5");
        has(&text, "headwater_channel_start_seconds_bucket{le=\"+Inf\"} 6");
        has(&text, "headwater_channel_start_seconds_count 6");
        has(&text, "headwater_channel_start_seconds_sum 9.5");
    }
}
