//! Messages of a live channel.

use std::time::Duration;

use domain::cluster::record::NodeId;
use domain::playout::{Attempt, Lack};
use media::error::UpstreamError;
use media::ring::EndReason;
use media::source::Source;
use media::splice::PictureEvent;
use ractor::{ActorId, RpcReplyPort};

use super::status::ChannelStatus;
use super::switch::{SwitchOutcome, SwitchTo};
use super::watch::{JoinRequest, WatchReply};
use crate::registry::SourceSlow;
use crate::slots;

/// A forwarded join. Its number decides whether the channel may retire.
pub(crate) struct Join {
    pub(crate) number: u64,
    pub(crate) request: JoinRequest,
    pub(crate) reply: RpcReplyPort<WatchReply>,
}

/// The reason to start a channel without a viewer of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostFor {
    /// Another node needs it, and this one may become its origin, in place of the one of the epoch. `is_watched`: viewers
    /// of other nodes have watched it.
    Node { replaces: Option<u64>, is_watched: bool },
    /// The process before this one plays it, and other nodes read it here.
    Predecessor,
}

/// The decision about the origin of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnerDecision {
    /// This node opens the source, or continues with the present one.
    Originate { epoch: u64 },
    /// This node pulls from another one.
    Pull { from: NodeId, epoch: u64 },
    /// The source of this node is not wanted any more.
    Release,
}

/// A report of a live channel to the switchboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChannelReport {
    /// Nobody has watched for the linger time. The number is that of the last join.
    Idle(u64),
    /// A join arrived before the order to retire.
    Awake,
    /// The channel accepts no more joins and ends soon.
    Ending,
}

/// The messages of a live channel.
pub(crate) enum Message {
    /// Loads the plan. The starter of the channel sends it before every other message.
    Load,
    /// A viewer wants to watch.
    Join(Join),
    /// Somebody outside of this process needs the channel. The number is like that of a join.
    Host { number: u64, host: HostFor, reply: RpcReplyPort<Result<(), String>> },
    /// The node that needed the channel has not read it in time.
    HostedInVain,
    /// No node opens the channel, which this one may not open, for this reason.
    NobodyOpens(String),
    /// A message of the slots actor.
    Slots(slots::SlotMessage),
    /// The opener has a source with its first packets.
    Opened(Attempt, Source),
    /// The source of an attempt ended, or could not be opened.
    Lost(Attempt, UpstreamError),
    /// The output can continue with the source of this attempt, which is read beside the one that plays.
    Ready(Attempt),
    /// The first packets of this attempt become readable after this message.
    Playing(Attempt),
    /// The source that plays has been silent for this long.
    Silent(Attempt, Duration),
    /// The source that was silent sends again.
    Resumed(Attempt),
    /// This part is missing in the source that plays, which otherwise goes on, or its picture stands still. `never`: it has
    /// not come yet.
    Lacks { attempt: Attempt, lack: Lack, never: bool },
    /// The source that plays has this part again.
    Complete(Attempt, Lack),
    /// How the picture of the source that plays begins, which replaces another.
    Picture(Attempt, PictureEvent),
    /// The programme clock of the source fell behind the wall clock.
    Slow(SourceSlow),
    /// The pump ended unexpectedly.
    PumpGone,
    /// The actor of a client ended, for this reason.
    ClientEnded(ActorId, String),
    /// The deadline of the playout passed.
    Tick,
    /// Nobody has watched for the linger time. The number is that of the last join.
    Lingered(u64),
    /// Nobody has watched a rendition for the linger time. The number is that of its timer.
    RenditionLingered(u64),
    /// Nobody has watched the segments of a segmenter for the linger time. The number is that of its timer.
    SegmenterLingered(u64),
    /// Ends the channel unless a join with a later number arrived.
    Retire(u64),
    /// Ends the channel now; clients read their last chunks and then this reason.
    Stop(EndReason),
    /// The time of the clients of an ending channel is over.
    Farewell,
    /// Switches to another stream.
    Switch(SwitchTo, RpcReplyPort<SwitchOutcome>),
    /// The cluster has decided who opens the source.
    Owner(OwnerDecision),
    /// The cluster has not decided in time.
    OwnerTimeout,
    /// The origin answers, and may need the slot of the source that this node plays until the origin has something to show.
    PullReached(Attempt),
    /// The origin answers on this connection.
    PullAttached(Attempt, Source),
    /// The origin has not answered for a second.
    PullUnanswered(Attempt, UpstreamError),
    /// The origin has not answered for so long that nobody waits any more.
    PullGaveUp(Attempt),
    /// Another node reads the ring.
    EdgeJoined,
    /// Another node does not read the ring any more.
    EdgeLeft,
    /// The time of the viewers of a drained node is over. A channel that is recorded goes on.
    EndViewers,
    /// Disconnects one client. Replies whether it existed.
    Kick(u64, RpcReplyPort<bool>),
    /// Loads the plan again.
    Reload,
    /// Requests the status.
    Status(RpcReplyPort<ChannelStatus>),
    /// Aborts the pump, as a defect in it would.
    #[cfg(any(test, feature = "testing"))]
    LosePump,
    /// Blocks the channel until the other end is dropped, as a busy machine would.
    #[cfg(test)]
    Block(std::sync::mpsc::Receiver<()>),
}

impl From<slots::SlotMessage> for Message {
    fn from(message: slots::SlotMessage) -> Self {
        Message::Slots(message)
    }
}

impl TryFrom<Message> for slots::SlotMessage {
    type Error = ();

    fn try_from(message: Message) -> Result<Self, ()> {
        match message {
            Message::Slots(message) => Ok(message),
            _ => Err(()),
        }
    }
}

impl From<SourceSlow> for Message {
    fn from(message: SourceSlow) -> Self {
        Message::Slow(message)
    }
}

impl TryFrom<Message> for SourceSlow {
    type Error = ();

    fn try_from(message: Message) -> Result<Self, ()> {
        match message {
            Message::Slow(message) => Ok(message),
            _ => Err(()),
        }
    }
}
