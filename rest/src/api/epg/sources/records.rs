//! Creates and changes the records of guide sources.

use actors::now_ms;
use domain::guide::channel::GuideChannel;
use domain::guide::generated::guide_channel_key;
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::guide::state::GuideState;
use domain::ids::{GuideChannelId, GuideSourceId};
use server::reply::Refusal;
use storage::Write;

/// Maximum number of guide sources.
const SOURCES_MAX: usize = 1_000;

/// Returns a source of this kind with a new id and no name.
pub(in crate::api) fn new_source(
    write: &mut Write<'_>,
    kind: GuideSourceKind,
) -> Result<GuideSource, Refusal> {
    if write.all::<GuideSource>()?.len() >= SOURCES_MAX {
        return Err(Refusal::bad_request(format!("At most {SOURCES_MAX} guide sources are allowed.")));
    }
    Ok(GuideSource::new(GuideSourceId(write.next_id::<GuideSource>()?), "", kind, now_ms()))
}

/// Writes the guide channel of a source of generated programmes, to which channels can be linked. `known` is the present
/// one.
pub(super) fn put_generated_channel(
    write: &mut Write<'_>,
    source: &GuideSource,
    known: Option<GuideChannel>,
) -> Result<(), Refusal> {
    let names = vec![source.name.clone()];
    let channel = match known {
        Some(known) => GuideChannel { names, ..known },
        None => GuideChannel {
            id: GuideChannelId(write.next_id::<GuideChannel>()?),
            source: source.id,
            key: guide_channel_key(&source.name),
            names,
            icon: None,
        },
    };
    Ok(write.put(&channel)?)
}

/// Notes that a source leads to another guide, so that its next answer is not compared with the last one.
pub(in crate::api) fn forget_content(write: &mut Write<'_>, source: GuideSourceId) -> Result<(), Refusal> {
    if let Some(mut state) = write.get::<GuideState>(source.0)? {
        state.forget_content();
        write.put(&state)?;
    }
    Ok(())
}

/// Sets the time of the change if there was one. Returns whether there was one.
pub(super) fn touch(source: &mut GuideSource, before: &GuideSource) -> bool {
    let is_changed = source != before;
    if is_changed {
        source.updated_at = now_ms();
    }
    is_changed
}
