//! The progress of refreshes on other nodes of a cluster: the node that writes the configuration refreshes, and sockets of
//! all nodes show it.

use std::collections::HashMap;
use std::sync::Arc;

use actors::now_ms;
use node::overview;
use serde_json::Value;
use tokio::sync::broadcast;

use super::frames::{self, Notification};
use super::hub::every_period;
use crate::context::PushContext;

/// Maximum number of refreshes that a node sends. Each is that of an account or of a guide source.
const REFRESHES_MAX: usize = 1_000;

/// The types of notifications that are taken from other nodes, with the field that identifies what is refreshed.
const TYPES: [(&str, &str); 3] =
    [("m3u_refresh", "account"), ("vod_refresh", "account"), ("epg_refresh", "source")];

/// Returns the contents of the notifications of the last refreshes of this node, for other nodes. They contain no credentials.
pub fn refreshes_for_others(context: &PushContext) -> Vec<Value> {
    let now = now_ms();
    let playlists = context.importer.progress().into_iter().map(|it| frames::refresh(&it, now));
    let films = context.vod_importer.progress().into_iter().map(|it| frames::vod_refresh(&it, now));
    let guides = context.guide_refreshes.progress().into_iter().map(|it| frames::guide_refresh(&it, now));
    playlists.chain(films).chain(guides).take(REFRESHES_MAX).collect()
}

/// Sends the progress of refreshes on other nodes.
pub(super) async fn watch_refreshes(context: &PushContext, sender: &broadcast::Sender<Arc<Notification>>) {
    if context.nodes.node().is_none() {
        return;
    }
    let mut known = RefreshesElsewhere::default();
    let mut ticks = every_period();
    loop {
        ticks.tick().await;
        for changed in known.changes(overview::refreshes(&context.nodes).await) {
            // An error only means that there is no listener.
            let _ = sender.send(Notification::for_admins(changed));
        }
    }
}

/// The rows that were sent last, by the type and the id of what is refreshed.
#[derive(Default)]
struct RefreshesElsewhere(Option<HashMap<(&'static str, u64), Value>>);

impl RefreshesElsewhere {
    /// Returns the rows that have changed. Those that are over at the first call are skipped.
    fn changes(&mut self, rows: Vec<Value>) -> Vec<Value> {
        let is_first = self.0.is_none();
        let known = self.0.get_or_insert_default();
        let (mut changed, mut seen) = (Vec::new(), HashMap::new());
        for row in rows.into_iter().take(REFRESHES_MAX) {
            let Some(key) = key(&row) else { continue };
            let mut steps = row.clone();
            // It always changes.
            if let Some(steps) = steps.as_object_mut() {
                steps.remove("elapsed_time");
            }
            let is_skipped = is_first && row["action"] == "done";
            if !is_skipped && known.get(&key) != Some(&steps) {
                changed.push(row);
            }
            seen.insert(key, steps);
        }
        // Those of a node that does not answer for a moment are not sent again.
        known.extend(seen);
        changed
    }
}

/// Identifies what is refreshed; `None` for what this version does not know.
fn key(row: &Value) -> Option<(&'static str, u64)> {
    let (name, id) = TYPES.into_iter().find(|(name, _)| row["type"] == *name)?;
    Some((name, row[id].as_u64()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(kind: &str, account: u32, action: &str, elapsed: u32) -> Value {
        json!({ "type": kind, "account": account, "action": action, "elapsed_time": elapsed })
    }

    #[test]
    fn each_step_of_a_refresh_elsewhere_is_sent_once_and_old_ones_are_not() {
        let mut known = RefreshesElsewhere::default();
        let (old, running) = (|| row("m3u_refresh", 1, "done", 9), |it| row("m3u_refresh", 2, "parsing", it));
        assert_eq!(known.changes(vec![old(), running(1)]), [running(1)]);
        assert_eq!(known.changes(vec![old(), running(2)]), Vec::<Value>::new());
        // The node does not answer.
        assert_eq!(known.changes(Vec::new()), Vec::<Value>::new());
        let (done, films) = (row("m3u_refresh", 2, "done", 3), row("vod_refresh", 2, "movies", 0));
        assert_eq!(known.changes(vec![old(), done.clone(), films.clone()]), [done, films]);
    }

    #[test]
    fn only_refreshes_are_taken_from_another_node() {
        let mut known = RefreshesElsewhere::default();
        let rows = vec![row("notices", 1, "x", 0), json!({ "type": "epg_refresh", "source": "x" }), json!(7)];
        assert_eq!(known.changes(rows), Vec::<Value>::new());
    }
}
