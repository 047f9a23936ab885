//! Manual switches.

use domain::ids::StreamId;
use domain::playout::{Input, SwitchTarget};
use ractor::RpcReplyPort;

use super::change::ChannelChange;
use super::manual_switch::ManualSwitch;
use super::state::State;
use crate::ask::answer;
use crate::channel::{SwitchOutcome, SwitchTo};
use crate::plans::Target;

impl State {
    pub(super) fn switch(&mut self, to: SwitchTo, reply: RpcReplyPort<SwitchOutcome>) {
        if let Some(node) = self.sharing.status().filter(|it| !it.is_origin && self.ending.is_none()) {
            return answer(reply, SwitchOutcome::AtNode(node.origin));
        }
        if self.upstream.is_idle() || self.ending.is_some() {
            return answer(reply, SwitchOutcome::NotLive);
        }
        // A switch whose caller went away does not block others.
        if self.manual_switch.as_ref().is_some_and(|it| !it.reply.is_closed()) {
            return answer(reply, SwitchOutcome::Busy);
        }
        let (to, candidate) = match to {
            SwitchTo::Next => (SwitchTarget::Next, None),
            SwitchTo::Stream(stream) => match self.place_of_any(stream) {
                Some(index) => (SwitchTarget::To(index), self.upstream.candidate(index)),
                None => return answer(reply, SwitchOutcome::NoSuchStream),
            },
        };
        let previous = self.history.last_stream().map(|it| it.id);
        self.manual_switch = Some(ManualSwitch { reply, noted: None, previous });
        self.push_reported(Input::Switch(to), ChannelChange::SwitchRequested { candidate });
    }

    /// Returns the place of a stream in the plan. A stream that is not of the channel joins the plan.
    fn place_of_any(&mut self, stream: StreamId) -> Option<usize> {
        let is_channel = matches!(self.context.target, Target::Channel(_));
        if self.upstream.place_of(stream).is_none() && is_channel {
            let preview = self.context.env.plans.plan(&Target::Stream(stream));
            preview.filter(|it| !it.candidates.is_empty())?;
            self.upstream.add_outside_stream(stream);
            self.reload();
        }
        self.upstream.place_of(stream)
    }

    /// Answers the manual switch, if one is under way.
    pub(super) fn answer_switch(&mut self, outcome: SwitchOutcome) {
        if let Some(switch) = self.manual_switch.take() {
            answer(switch.reply, outcome);
        }
    }

    /// Answers a switch that was noted for the stream that plays now.
    pub(super) fn answer_noted_switch(&mut self, gap_ms: u64) {
        let playing = self.upstream.playing().map(|it| it.stream);
        let noted = self.manual_switch.as_ref().filter(|it| it.noted.is_some() && it.noted == playing);
        if let Some((stream, previous)) = playing.zip(noted.map(|it| it.previous)) {
            self.answer_switch(SwitchOutcome::Switched { stream, previous, gap_ms });
        }
    }
}
