//! The message loop of a client actor.

use std::sync::Arc;

use media::meter::Connection;
use ractor::{ActorProcessingErr, ActorRef};

use super::Message;

pub(crate) struct Actor;

/// Closes the connection on drop. A client actor that dies of a defect or with its channel, or that never started,
/// closes its connection. After the tail was dropped, the connection is left to the server, which may still be flushing
/// the last bytes.
pub(crate) struct State {
    connection: Arc<Connection>,
    left: bool,
}

impl State {
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        Self { connection, left: false }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if !self.left {
            self.connection.cancel.cancel();
        }
    }
}

impl ractor::Actor for Actor {
    type Msg = Message;
    type State = State;
    type Arguments = State;

    async fn pre_start(&self, _myself: ActorRef<Message>, state: State) -> Result<State, ActorProcessingErr> {
        Ok(state)
    }

    async fn handle(
        &self,
        myself: ActorRef<Message>,
        message: Message,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Left(reason) => {
                state.left = true;
                myself.stop(Some(reason.to_owned()));
            }
            Message::Stalled(stalled) => {
                state.connection.cancel.cancel();
                myself.stop(Some(format!("accepted no byte for {} s", stalled.blocked.as_secs())));
            }
            Message::Kick(reason) => {
                state.connection.cancel.cancel();
                myself.stop(Some(reason.to_owned()));
            }
        }
        Ok(())
    }
}
