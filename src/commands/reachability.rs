//! Part of `headwater cluster check`: whether this machine reaches the other nodes.

use std::time::Duration;

use cluster::nats::{NatsEngine, NatsOptions};
use cluster::{Engine, Key};
use config::{Config, DataFolder};
use futures_util::future::join_all;
use node::file::NodeFile;
use node::reach::reach;
use tokio::time::timeout;

use super::cluster::{connected, renewals};
use super::doctor::{CheckReport, Finding};

/// Longest wait for the answer of a node, with all its addresses.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Connects to each node that renews its record, as channels and changes of the configuration do. Without an identity of this
/// machine in the cluster, there is nothing to check.
pub(super) async fn check_nodes(config: &Config, options: NatsOptions, report: &mut CheckReport) {
    let file = match NodeFile::read(&DataFolder::new(&config.data_dir).node()) {
        Ok(Some(file)) => file,
        Ok(None) => return,
        Err(error) => {
            let advice = "Let this machine join again, with a new token and an empty data folder.";
            report.add(Finding::problem("this node", error.to_string(), advice));
            return;
        }
    };
    let engine = NatsEngine::start(options);
    if let Err(error) = connected(&engine).await {
        report.add(Finding::problem("nodes", error.to_string(), "Correct what is wrong with NATS first."));
        return;
    }
    let mut events = engine.watch(Key::new("member"));
    let nodes = renewals(&mut events).await;
    let others = nodes.iter().filter(|it| it.is_alive()).map(|it| &it.stored.node);
    let others: Vec<_> = others.filter(|it| it.certificate.is_some_and(|it| it != file.node.0)).collect();
    let asked = others.iter().map(|it| timeout(ANSWER_MAX, reach(&file, it)));
    for (node, reached) in others.iter().zip(join_all(asked).await) {
        let what = format!("node {}", node.name);
        report.add(match reached.unwrap_or_else(|_| Err("it does not answer in time".to_owned())) {
            Ok(()) => Finding::good(&what, "this machine reaches it"),
            Err(reason) => Finding::problem(
                &what,
                format!("this machine does not reach it at {}: {reason}", node.addresses.join(", ")),
                "Open its port for other nodes (9292 by default) in firewalls, and correct its `cluster.addresses`.",
            ),
        });
    }
}
