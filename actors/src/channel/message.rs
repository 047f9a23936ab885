//! What a live channel can be told.

use domain::playout::Attempt;
use media::error::UpstreamError;
use media::ring::EndReason;
use media::source::Source;
use ractor::RpcReplyPort;

use super::{ChannelStatus, JoinRequest, SwitchOutcome, SwitchTo, WatchReply};
use crate::bandwidth::Slow;
use crate::slots;

/// A join on its way: its number decides whether the channel may retire.
pub(crate) struct Join {
    pub(crate) number: u64,
    pub(crate) wish: JoinRequest,
    pub(crate) reply: RpcReplyPort<WatchReply>,
}

/// Everything a live channel can be told.
pub(crate) enum Message {
    /// Read your plan. The first message of all, told by whoever starts the channel.
    Load,
    /// Someone wants to watch.
    Join(Join),
    /// News of the slots.
    Slots(slots::SlotMessage),
    /// The opener has a source with first packets.
    Opened(Attempt, Source),
    /// The source of an attempt ended, or never began.
    Lost(Attempt, UpstreamError),
    /// The first packets of this attempt are in the ring.
    Playing(Attempt),
    /// Its programme clock fell behind the wall clock.
    Slow(Slow),
    /// The pump ended although nobody asked it to.
    PumpGone,
    /// The playout's deadline is over.
    Tick,
    /// The last client has been gone for the linger time.
    Lingered(u64),
    /// No join was forwarded since that number: end.
    Retire(u64),
    /// End now; clients get their last chunks and this end.
    Stop(EndReason),
    /// The clients of an ending channel had time enough.
    Farewell,
    /// Play another stream.
    Switch(SwitchTo, RpcReplyPort<SwitchOutcome>),
    /// End one client. Answers whether there was such a client.
    Kick(u64, RpcReplyPort<bool>),
    /// The plan changed.
    Reload,
    /// How are you? Answered from memory.
    Status(RpcReplyPort<ChannelStatus>),
    /// End your pump, as a defect in it would.
    #[cfg(any(test, feature = "testing"))]
    LosePump,
}

impl From<slots::SlotMessage> for Message {
    fn from(news: slots::SlotMessage) -> Self {
        Message::Slots(news)
    }
}

impl TryFrom<Message> for slots::SlotMessage {
    type Error = ();

    fn try_from(message: Message) -> Result<Self, ()> {
        match message {
            Message::Slots(news) => Ok(news),
            _ => Err(()),
        }
    }
}

impl From<Slow> for Message {
    fn from(news: Slow) -> Self {
        Message::Slow(news)
    }
}

impl TryFrom<Message> for Slow {
    type Error = ();

    fn try_from(message: Message) -> Result<Self, ()> {
        match message {
            Message::Slow(news) => Ok(news),
            _ => Err(()),
        }
    }
}
