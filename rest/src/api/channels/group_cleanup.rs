//! `/api/channels/groups/cleanup/`: deletes channel groups that nothing uses.

use std::collections::HashSet;

use domain::account_group::AccountGroup;
use domain::group::Group;
use resource_derive::View;
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::Route;
use serde::Serialize;
use server::reply::Refusal;

use super::groups::{has_channels, links};
use crate::context::RestCall;

/// Result of a cleanup.
#[derive(Clone, Debug, Serialize, View)]
struct GroupCleanupView {
    /// Message for people.
    #[field(example = "Deleted 2 groups")]
    message: String,
    /// Number of deleted groups.
    #[field(example = "2")]
    deleted_count: usize,
    /// Names of the deleted groups.
    deleted_groups: Vec<String>,
}

pub(super) fn routes() -> Vec<Route> {
    let summary = "Deletes all channel groups without channels and streams.";
    vec![Route::post("/api/channels/groups/cleanup/", ADMIN, summary, clean_up)]
}

async fn clean_up(call: Call) -> Result<GroupCleanupView, Refusal> {
    let streams = call.rest().models.streams.load().groups(None);
    let of_streams: HashSet<String> = streams.into_iter().map(|it| it.0).collect();
    let deleted_groups = call.write(move |write| {
        let mut names = Vec::new();
        for group in write.all::<Group>()? {
            let is_named = group.names().any(|it| of_streams.contains(it));
            // The playlist of an account names it, although none of its streams are imported.
            let is_linked = links(write, &group)?.iter().any(|it| it.last_seen.is_none());
            if !is_named && !is_linked && !has_channels(write, &group)? {
                for link in links(write, &group)? {
                    write.remove::<AccountGroup>(link.id.0)?;
                }
                write.remove::<Group>(group.id.0)?;
                names.push(group.name);
            }
        }
        Ok(names)
    });
    let deleted_groups = deleted_groups.await?;
    let deleted_count = deleted_groups.len();
    Ok(GroupCleanupView { message: format!("Deleted {deleted_count} groups"), deleted_count, deleted_groups })
}
