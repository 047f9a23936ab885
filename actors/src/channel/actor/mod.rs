//! The message loop of a live channel.
//!
//! A handler changes the values that hold the state ([`upstream`], [`audience`], [`history`]), queues inputs for
//! the playout, and then carries out the playout's actions. [`State::report`](report) is the only place that writes log lines,
//! timeline entries, counters and events.

mod attempts;
mod audience;
mod change;
mod context;
mod decisions;
mod history;
mod input_queue;
mod joins;
mod manual_switch;
mod origin;
mod repeats;
mod report;
mod sharing;
mod state;
mod switching;
mod upstream;

use domain::playout::Input;
use media::ring::EndReason;
use ractor::{ActorProcessingErr, ActorRef, SupervisionEvent};
use tracing::error;

use self::sharing::is_pull;
pub(crate) use self::state::{Arguments, State};
use super::Message;
use crate::ask::answer;

#[cfg(test)]
pub(super) use self::state::FAREWELL_TIMEOUT;

pub(crate) struct Actor;

impl ractor::Actor for Actor {
    type Msg = Message;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(
        &self,
        myself: ActorRef<Message>,
        arguments: Arguments,
    ) -> Result<State, ActorProcessingErr> {
        Ok(State::new(myself, arguments))
    }

    async fn handle(
        &self,
        myself: ActorRef<Message>,
        message: Message,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Load => state.load(),
            Message::Join(join) => state.join(join),
            Message::Host { number, host, reply } => {
                let outcome = state.host(number, host);
                answer(reply, outcome);
            }
            Message::HostedInVain => state.hosted_in_vain(),
            Message::NobodyOpens(reason) => state.nobody_opens(&reason),
            Message::Slots(message) => state.slots(message),
            Message::Opened(attempt, source) => state.opened(attempt, source),
            Message::Lost(attempt, cause) if is_pull(attempt) => state.pull_ended(attempt, cause),
            Message::Lost(attempt, cause) => state.lost(attempt, cause),
            Message::Ready(attempt) => state.push(Input::Ready { attempt }),
            Message::Playing(attempt) if is_pull(attempt) => state.pull_plays(attempt),
            Message::Playing(attempt) => state.push(Input::Playing { attempt }),
            Message::Silent(attempt, silence) => state.silent(attempt, silence),
            Message::Resumed(attempt) => state.resumed(attempt),
            Message::Lacks { attempt, lack, never } => state.lacks(attempt, lack, never),
            Message::Complete(attempt, lack) => state.complete(attempt, lack),
            Message::Picture(attempt, event) => state.picture(attempt, event),
            Message::Slow(slow) => state.slow(slow.attempt, slow.behind),
            Message::ClientEnded(client, reason) => state.client_ended(client, &reason),
            Message::PumpGone => return Err("the pump ended unexpectedly".into()),
            Message::Tick => {
                state.upstream.deadline_passed();
                state.push(Input::Tick);
            }
            Message::Lingered(number) => state.lingered(number),
            Message::RenditionLingered(number) => state.audience.rendition_lingered(number),
            Message::SegmenterLingered(number) => state.audience.segmenter_lingered(number),
            Message::Retire(number) => state.retire(number),
            Message::Stop(end) => state.end(end),
            Message::Farewell => {
                state.audience.kick_all("the channel ended");
                myself.stop(None);
            }
            Message::Switch(to, reply) => state.switch(to, reply),
            Message::Owner(decision) => state.owner(decision),
            Message::OwnerTimeout => state.owner_timeout(),
            Message::PullReached(attempt) => state.pull_reached(attempt),
            Message::PullAttached(attempt, source) => state.pull_attached(attempt, source),
            Message::PullUnanswered(attempt, cause) => state.pull_unanswered(attempt, cause),
            Message::PullGaveUp(attempt) => state.pull_gave_up(attempt),
            Message::EdgeJoined => state.edge_joined(),
            Message::EdgeLeft => state.edge_left(),
            Message::EndViewers if state.audience.is_recorded() => {}
            Message::EndViewers => state.end(EndReason::Stopped),
            Message::Kick(client, reply) => state.audience.kick(client, reply),
            Message::Reload => state.reload(),
            Message::Status(reply) => answer(reply, state.status()),
            #[cfg(any(test, feature = "testing"))]
            Message::LosePump => state.upstream.abort_pump(),
            #[cfg(test)]
            Message::Block(until) => drop(until.recv()),
        }
        state.run_queue();
        state.update_linger();
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<Message>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let (client, reason) = match event {
            SupervisionEvent::ActorTerminated(client, _, reason) => {
                (client, reason.unwrap_or_else(|| "ended".to_owned()))
            }
            SupervisionEvent::ActorFailed(client, cause) => {
                error!(
                    channel.target = %state.context.target,
                    "a client actor failed, its connection is closed: {cause}"
                );
                (client, "failed".to_owned())
            }
            _ => return Ok(()),
        };
        // These events overtake messages. The departure of a client has to come after the message that the source plays
        // whose packets the client got.
        let _ = myself.cast(Message::ClientEnded(client.get_id(), reason));
        Ok(())
    }

    async fn post_stop(
        &self,
        _myself: ActorRef<Message>,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        // The supervisor receives the state before it is dropped; slots have to be released without that delay.
        state.upstream.shut_down();
        state.sharing.end();
        state.report_stop();
        Ok(())
    }
}
