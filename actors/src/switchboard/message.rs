//! What the switchboard can be told.

use media::ring::EndReason;
use ractor::RpcReplyPort;

use super::{ChannelOverview, StopOutcome};
use crate::channel::{ChannelReport, ChannelStatus, JoinRequest, SwitchOutcome, SwitchTo, WatchReply};
use crate::plans::Target;

/// Everything the switchboard can be told.
pub(crate) enum Message {
    /// Someone wants to watch.
    Watch { target: Target, request: JoinRequest, reply: RpcReplyPort<WatchReply> },
    /// A live channel says how it stands.
    Reported { target: Target, serial: u64, report: ChannelReport },
    /// A live channel is gone.
    Ended { target: Target, serial: u64 },
    /// The leases of a channel that is gone are back.
    Drained { target: Target, serial: u64 },
    /// End a live channel.
    Stop { target: Target, end: EndReason, reply: RpcReplyPort<StopOutcome> },
    /// Play another stream.
    Switch { target: Target, to: SwitchTo, reply: RpcReplyPort<SwitchOutcome> },
    /// End one client.
    Kick { target: Target, client: u64, reply: RpcReplyPort<bool> },
    /// How is it doing?
    Status { target: Target, reply: RpcReplyPort<Option<ChannelStatus>> },
    /// How is everything that lives doing?
    Overview { reply: RpcReplyPort<Vec<ChannelOverview>> },
    /// The plans changed.
    Reload { reply: RpcReplyPort<()> },
    /// Take no more joins and end everything.
    Close,
}
