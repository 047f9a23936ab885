//! A manual switch that is under way.

use domain::ids::StreamId;
use ractor::RpcReplyPort;

use crate::channel::SwitchOutcome;

/// A manual switch whose caller waits for the outcome.
pub(super) struct ManualSwitch {
    pub(super) reply: RpcReplyPort<SwitchOutcome>,
    /// The stream that the switch was noted for while nothing played. The switch succeeds as soon as that stream
    /// plays, for whatever reason.
    pub(super) noted: Option<StreamId>,
    /// The stream that played last before the switch.
    pub(super) previous: Option<StreamId>,
}

impl ManualSwitch {
    /// Notes the stream that is tried first at the next attempt.
    pub(super) fn note(&mut self, stream: Option<StreamId>) {
        self.noted = stream;
    }
}
