//! Messages of a client actor.

use crate::registry::ClientStalled;

/// The messages of a client actor.
#[derive(Debug)]
pub(crate) enum Message {
    /// The tail was dropped; with the reason for the log: the player left, the ring ended, or the seat was taken away.
    Left(&'static str),
    /// The socket accepts no more bytes.
    Stalled(ClientStalled),
    /// Disconnects the client, with the reason for the log.
    Kick(&'static str),
}

impl From<ClientStalled> for Message {
    fn from(message: ClientStalled) -> Self {
        Message::Stalled(message)
    }
}

impl TryFrom<Message> for ClientStalled {
    type Error = ();

    fn try_from(message: Message) -> Result<Self, ()> {
        match message {
            Message::Stalled(message) => Ok(message),
            Message::Left(_) | Message::Kick(_) => Err(()),
        }
    }
}
