//! Messages of the switchboard.

use media::ring::EndReason;
use ractor::RpcReplyPort;

use super::{ChannelOverview, StopOutcome};
use crate::channel::{
    ChannelReport, ChannelStatus, HostFor, JoinRequest, SwitchOutcome, SwitchTo, WatchReply,
};
use crate::plans::Target;

/// The messages of the switchboard.
pub(crate) enum Message {
    /// Joins a live channel, or starts one.
    Watch { target: Target, request: JoinRequest, reply: RpcReplyPort<WatchReply> },
    /// Starts a live channel without a viewer of this process.
    Host { target: Target, host: HostFor, reply: RpcReplyPort<Result<(), String>> },
    /// A live channel reports its state.
    Reported { target: Target, serial: u64, report: ChannelReport },
    /// A live channel ended.
    Ended { target: Target, serial: u64 },
    /// All leases of an ended channel are returned.
    Drained { target: Target, serial: u64 },
    /// Stops a live channel.
    Stop { target: Target, end: EndReason, reply: RpcReplyPort<StopOutcome> },
    /// Switches to another stream.
    Switch { target: Target, to: SwitchTo, reply: RpcReplyPort<SwitchOutcome> },
    /// Disconnects one client.
    Kick { target: Target, client: u64, reply: RpcReplyPort<bool> },
    /// Requests the status of a live channel.
    Status { target: Target, reply: RpcReplyPort<Option<ChannelStatus>> },
    /// Requests the status of all live channels.
    Overview { reply: RpcReplyPort<Vec<ChannelOverview>> },
    /// Makes all live channels load their plans again.
    Reload { reply: RpcReplyPort<()> },
    /// Refuses further joins.
    Refuse,
    /// Refuses further joins and ends all live channels.
    Close,
}
