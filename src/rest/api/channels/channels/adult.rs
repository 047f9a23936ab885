//! Whether channels are adult content: decided by people, and otherwise by the marks of their streams.

use std::collections::HashMap;

use domain::channel::Channel;
use domain::ids::StreamId;
use domain::stream::Stream;
use server::reply::Refusal;
use storage::Write;

/// The marks of streams, each of which is read once. Holds at most the streams of the channels of one request.
#[derive(Default)]
pub(super) struct AdultMarks(HashMap<StreamId, bool>);

impl AdultMarks {
    /// Takes over the marks of the streams of a channel, if they changed and no person decided otherwise.
    pub(super) fn follow(
        &mut self,
        write: &Write<'_>,
        before: &Channel,
        channel: &mut Channel,
    ) -> Result<(), Refusal> {
        if channel.streams != before.streams && !channel.is_adult_by_hand() {
            let is_marked = self.any(write, &channel.streams)?;
            channel.follow_adult_mark(is_marked);
        }
        Ok(())
    }

    /// Applies the value that a client sent, if any. The present value of a channel is not a decision, because clients send
    /// whole objects back.
    pub(super) fn apply(
        &mut self,
        write: &Write<'_>,
        before: &Channel,
        channel: &mut Channel,
        sent: Option<bool>,
    ) -> Result<(), Refusal> {
        // Every stored channel has a name.
        let is_new = before.name.is_empty();
        match sent.filter(|it| is_new || *it != before.is_adult) {
            Some(is_adult) => {
                let is_marked = self.any(write, &channel.streams)?;
                channel.set_adult_by_hand(is_adult, is_marked);
                Ok(())
            }
            None => self.follow(write, before, channel),
        }
    }

    /// Returns whether one of these streams is marked.
    fn any(&mut self, write: &Write<'_>, streams: &[StreamId]) -> Result<bool, Refusal> {
        for id in streams {
            let is_marked = match self.0.get(id) {
                Some(known) => *known,
                None => write.get::<Stream>(id.0)?.is_some_and(|it| it.is_adult()),
            };
            self.0.insert(*id, is_marked);
            if is_marked {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
