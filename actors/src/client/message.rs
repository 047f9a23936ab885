//! What a client can be told.

use crate::bandwidth::Stalled;

/// Everything a client can be told.
#[derive(Debug)]
pub(crate) enum Message {
    /// Its tail was dropped, with the reason for the log: the player left, the ring ended, or its seat was taken away.
    Left(&'static str),
    /// Its socket takes no bytes any more.
    Stalled(Stalled),
    /// End it now, with the reason for the log.
    Kick(&'static str),
}

impl From<Stalled> for Message {
    fn from(news: Stalled) -> Self {
        Message::Stalled(news)
    }
}

impl TryFrom<Message> for Stalled {
    type Error = ();

    fn try_from(message: Message) -> Result<Self, ()> {
        match message {
            Message::Stalled(news) => Ok(news),
            Message::Left(_) | Message::Kick(_) => Err(()),
        }
    }
}
