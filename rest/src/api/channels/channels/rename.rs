//! Renames many channels by a regular expression.

use domain::channel::{CHANNEL_NAME_CHARS_MAX, Channel};
use domain::ids::ChannelId;
use domain::pattern::{PATTERN_BYTES_MAX, Pattern};
use resource_derive::{Body, View};
use route_frame::call::Call;
use serde::Serialize;
use server::field_errors::FieldErrors;
use server::reply::Refusal;

use super::numbers::{Changes, put_all};
use super::selection::Selection;
use crate::api::channels::pattern::compile;
use crate::api::channels::undo::{Author, UndoHandleView, UndoLog};
use crate::api::channels::values::Untrimmed;

/// Maximum number of examples in an answer.
const EXAMPLES_MAX: usize = 100;

/// Renames channels.
#[derive(Clone, Debug, Body)]
pub(crate) struct RegexRename {
    /// Regular expression, without look-around and back-references.
    #[field(chars_max = PATTERN_BYTES_MAX, example = "^UK: ")]
    find: Untrimmed,
    /// Replacement of each match, with references such as `$1` or `\1`; empty by default.
    #[field(blank, chars_max = PATTERN_BYTES_MAX, example = "")]
    replace: Option<Untrimmed>,
    /// `i` ignores the case. `g` is accepted and has no effect, because every match is replaced.
    #[field(blank, chars_max = 8, example = "i")]
    flags: Option<String>,
    /// If true, nothing is changed, and the answer shows what would change.
    preview: Option<bool>,
}

/// Result of renaming channels.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct RegexRenameView {
    /// Always true.
    success: bool,
    /// Message for people.
    #[field(example = "Renamed 2 channels")]
    message: String,
    /// Whether this is a preview, and nothing was changed.
    preview: bool,
    /// Number of channels that have another name now, or would have with a preview.
    #[field(example = "2")]
    updated_count: usize,
    /// Number of selected channels.
    #[field(example = "10")]
    total_count: usize,
    /// Old and new names of the first 100 of them.
    changes: Vec<RenamedView>,
    /// The handle with which the renaming can be undone; `null` if nothing was changed.
    undo: Option<UndoHandleView>,
}

/// Old and new name of a channel.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "RenamedChannel")]
pub(crate) struct RenamedView {
    /// Id of the channel.
    #[field(example = "7")]
    id: ChannelId,
    /// Name before.
    #[field(example = "UK: News")]
    before: String,
    /// Name after.
    #[field(example = "News")]
    after: String,
}

pub(super) async fn rename(
    call: Call,
    (selection, body): (Selection, RegexRename),
) -> Result<RegexRenameView, Refusal> {
    let RegexRename { find, replace, flags, preview } = body;
    let replace = replace.map(|it| it.0).unwrap_or_default();
    let pattern = compile(&find.0, &replace, &flags.unwrap_or_default())?;
    let selected = selection.resolve(&call)?;
    let is_preview = preview == Some(true);
    let author = Author::new(&call)?;
    call.write(move |write| {
        let channels = selected.load(write)?;
        let total_count = channels.len();
        let changes = renamed(channels, &pattern)?;
        let examples = changes.iter().take(EXAMPLES_MAX).map(|(before, after)| RenamedView {
            id: after.id,
            before: before.name.clone(),
            after: after.name.clone(),
        });
        let (examples, updated_count) = (examples.collect(), changes.len());
        let (mut undo, mut message) = (None, format!("{updated_count} channels would be renamed"));
        if !is_preview {
            message = format!("Renamed {updated_count} channels");
            let mut log = UndoLog::default();
            put_all(write, changes, &mut log)?;
            undo = log.keep(write, &author, &message)?;
        }
        Ok(RegexRenameView {
            success: true,
            message,
            preview: is_preview,
            updated_count,
            total_count,
            changes: examples,
            undo,
        })
    })
    .await
}

/// Returns the channels whose name changes.
fn renamed(channels: Vec<Channel>, pattern: &Pattern) -> Result<Changes, Refusal> {
    let mut errors = FieldErrors::default();
    let mut changes = Changes::new();
    for before in channels {
        let name = pattern.apply(&before.name).trim().to_owned();
        if name == before.name {
            continue;
        }
        let n_chars = name.chars().count();
        if name.is_empty() || name.contains('\0') {
            errors.add("replace", format!("Channel {} would have no valid name.", before.id));
        } else if n_chars > CHANNEL_NAME_CHARS_MAX {
            let message = format!(
                "The name of channel {} would have {n_chars} characters; at most {CHANNEL_NAME_CHARS_MAX} are allowed.",
                before.id
            );
            errors.add("replace", message);
        } else {
            changes.push((before.clone(), Channel { name, ..before }));
        }
    }
    errors.or(())?;
    Ok(changes)
}
