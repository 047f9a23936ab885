//! The inputs of the playout that wait for their turn.

use std::collections::VecDeque;

use domain::playout::Input;

use super::change::ChannelChange;

/// Inputs for the playout, each with the change to report before its actions are carried out. Empty after each message.
#[derive(Default)]
pub(super) struct InputQueue(VecDeque<(Input, Option<ChannelChange>)>);

impl InputQueue {
    /// Appends an input.
    pub(super) fn push(&mut self, input: Input, change: Option<ChannelChange>) {
        self.0.push_back((input, change));
    }

    /// Takes the oldest input.
    pub(super) fn pop(&mut self) -> Option<(Input, Option<ChannelChange>)> {
        self.0.pop_front()
    }
}
