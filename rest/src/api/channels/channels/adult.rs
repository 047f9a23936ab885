//! Whether channels are adult content: decided by people, and otherwise by the marks of their streams and groups.

use actors::any_adult;
use domain::channel::Channel;
use server::reply::Refusal;
use storage::Write;

/// Takes over the marks of the streams and the group of a channel, if these changed and no person decided otherwise.
pub(super) fn follow_marks(
    write: &Write<'_>,
    before: &Channel,
    channel: &mut Channel,
) -> Result<(), Refusal> {
    let is_changed = channel.streams != before.streams || channel.group != before.group;
    if is_changed && !channel.is_adult_by_hand() {
        let is_marked = any_adult(write, &channel.streams, channel.group)?;
        channel.follow_adult_mark(is_marked);
    }
    Ok(())
}

/// Applies the value that a client sent, if any. The present value of a channel decides nothing, because clients send
/// whole objects back.
pub(super) fn apply(
    write: &Write<'_>,
    before: &Channel,
    channel: &mut Channel,
    sent: Option<bool>,
) -> Result<(), Refusal> {
    // Every stored channel has a name.
    let is_new = before.name.is_empty();
    match sent.filter(|it| is_new || *it != before.is_adult) {
        Some(is_adult) => {
            let is_marked = any_adult(write, &channel.streams, channel.group)?;
            channel.set_adult_by_hand(is_adult, is_marked);
            Ok(())
        }
        None => follow_marks(write, before, channel),
    }
}
