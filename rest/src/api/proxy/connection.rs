//! The players of films, episodes and catch-up in answers.

use actors::{VodProfile, VodSessionInfo};
use domain::ids::{AccountId, ProfileId};
use resource_derive::View;
use route_frame::value::Time;
use serde::Serialize;
use storage::Models;

/// A player that watches a film, an episode or the past of a channel. All its requests share one connection to the provider.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct VodConnectionView {
    /// Id of the player, for `stop_client`.
    #[field(example = "17")]
    client_id: String,
    /// Name of the node that serves the player; `null` without a cluster.
    #[field(example = "attic")]
    node: Option<String>,
    /// IP address of the player.
    #[field(example = "192.0.2.7")]
    client_ip: String,
    /// User agent of the player; empty if it sends none.
    #[field(example = "VLC/3.0.20")]
    user_agent: String,
    /// Name of the user; `null` without a login.
    #[field(example = "anna")]
    username: Option<String>,
    /// When the player sent its first request.
    connected_at: Time,
    /// Seconds since then.
    #[field(example = "12.5")]
    duration: f64,
    /// Requests in progress.
    #[field(example = "1")]
    requests: usize,
    /// Number of bytes handed to the player.
    #[field(example = "7500000")]
    bytes_sent: u64,
    /// Number of bytes received from the provider.
    #[field(example = "7500000")]
    bytes_received: u64,
    /// Connections to the provider so far, one after the other.
    #[field(example = "2")]
    upstream_connections: u64,
    /// Whether a slot of the account is in use at the moment.
    uses_slot: bool,
    /// The next byte that the player gets.
    #[field(example = "7500000")]
    position_bytes: u64,
    /// Length of the file in bytes, once it is known.
    #[field(example = "1500000000")]
    content_length: Option<u64>,
    /// The account profile that the file is read with; `null` if it was not opened yet.
    m3u_profile: Option<VodProfileView>,
}

/// An account profile.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct VodProfileView {
    /// Name of the profile.
    #[field(example = "Default")]
    profile_name: String,
    /// Name of the account.
    #[field(example = "provider")]
    account_name: String,
    /// Id of the account.
    #[field(example = "1")]
    account_id: AccountId,
    /// Maximum number of simultaneous connections; 0 is unlimited.
    #[field(example = "1")]
    max_streams: u32,
    /// Id of the profile.
    #[field(example = "1")]
    m3u_profile_id: ProfileId,
}

/// Returns the view of a player.
pub(super) fn connection(models: &Models, session: &VodSessionInfo) -> VodConnectionView {
    VodConnectionView {
        client_id: session.id.to_string(),
        node: session.node.as_ref().map(|it| it.to_string()),
        client_ip: session.viewer.address.to_string(),
        user_agent: session.viewer.agent.clone(),
        username: session.viewer.user.clone(),
        connected_at: Time(session.started_at),
        duration: (session.age.as_secs_f64() * 10.0).round() / 10.0,
        requests: session.n_requests,
        bytes_sent: session.bytes_sent,
        bytes_received: session.bytes_read,
        upstream_connections: session.n_connections,
        uses_slot: session.has_slot,
        position_bytes: session.position,
        content_length: session.length,
        m3u_profile: session.profile.as_ref().map(|it| profile(models, it)),
    }
}

fn profile(models: &Models, pool: &VodProfile) -> VodProfileView {
    let accounts = models.accounts.load();
    let account = accounts.get(pool.account.0);
    let profile = account.and_then(|it| it.profiles.iter().find(|it| it.id == pool.profile));
    VodProfileView {
        profile_name: profile.map(|it| it.name.clone()).unwrap_or_default(),
        account_name: pool.account_name.clone(),
        account_id: pool.account,
        max_streams: pool.max_streams,
        m3u_profile_id: pool.profile,
    }
}
