//! The message loop of the bandwidth actor.

use std::sync::Arc;
use std::time::Duration;

use domain::settings::{CLIENT_STALL_TIMEOUT, CLOCK_BEHIND_MAX};
use ractor::{ActorProcessingErr, ActorRef};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::Message;
use crate::registry::{ClientStalled, Registry, SourceSlow};
use crate::tasks::ticks;

/// Interval at which the meters are read.
const PERIOD: Duration = Duration::from_secs(1);

pub(crate) struct Actor;

pub(crate) struct Arguments {
    pub(crate) registry: Arc<Registry>,
}

pub(crate) struct State {
    registry: Arc<Registry>,
    _ticker: AbortOnDropHandle<()>,
}

impl ractor::Actor for Actor {
    type Msg = Message;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(
        &self,
        myself: ActorRef<Message>,
        arguments: Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let ticker = ticks(&myself, PERIOD, || Message::Measure);
        Ok(State { registry: arguments.registry, _ticker: ticker })
    }

    async fn handle(
        &self,
        _myself: ActorRef<Message>,
        message: Message,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Measure => state.measure(),
        }
        Ok(())
    }
}

impl State {
    fn measure(&self) {
        for channel in self.registry.channels() {
            let Some(clock) = channel.pump.clock() else { continue };
            if clock.measured_for >= clock.window && clock.behind > CLOCK_BEHIND_MAX {
                // The send fails when the channel has ended.
                let _ =
                    channel.port.send_message(SourceSlow { attempt: clock.attempt, behind: clock.behind });
            }
        }
        let now = Instant::now();
        for client in self.registry.clients() {
            if let Some(blocked) = client.connection.meter.blocked_for(now)
                && blocked >= CLIENT_STALL_TIMEOUT
            {
                let _ = client.port.send_message(ClientStalled { blocked });
            }
        }
    }
}
