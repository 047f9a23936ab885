//! The message loop of the events actor.

use std::sync::Arc;

use ractor::{ActorProcessingErr, ActorRef};

use super::{Bus, HISTORY_MAX, Message};

pub(crate) struct Actor;

pub(crate) struct Arguments {
    pub(crate) bus: Arc<Bus>,
}

impl ractor::Actor for Actor {
    type Msg = Message;
    type State = Arc<Bus>;
    type Arguments = Arguments;

    async fn pre_start(
        &self,
        _myself: ActorRef<Message>,
        arguments: Arguments,
    ) -> Result<Arc<Bus>, ActorProcessingErr> {
        Ok(arguments.bus)
    }

    async fn handle(
        &self,
        _myself: ActorRef<Message>,
        message: Message,
        bus: &mut Arc<Bus>,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Emit(event) => {
                let mut history = bus.history.lock();
                if history.len() == HISTORY_MAX {
                    history.pop_front();
                }
                let number = history.back().map_or(1, |it| it.0 + 1);
                history.push_back((number, event.clone()));
                drop(history);
                // The send fails without subscribers, which is normal.
                let _ = bus.sender.send(event);
            }
        }
        Ok(())
    }
}
