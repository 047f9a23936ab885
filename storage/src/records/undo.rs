//! Operations that can be undone, and the values before and after them.

use domain::undo::{UndoEntry, UndoPart};

use crate::record::{Record, Sharing};

impl Record for UndoEntry {
    const COLLECTION: &'static str = "undo";
    const SHARING: Sharing = Sharing::FullNodes;
    /// Nothing depends on an entry.
    const MAY_BE_MISSED: bool = true;

    fn id(&self) -> u32 {
        self.id
    }
}

impl Record for UndoPart {
    const COLLECTION: &'static str = "undo_parts";
    const SHARING: Sharing = Sharing::FullNodes;
    /// Addresses can contain user names and passwords.
    const SEALED: bool = true;
    const MAY_BE_MISSED: bool = true;

    fn id(&self) -> u32 {
        self.id
    }
}
