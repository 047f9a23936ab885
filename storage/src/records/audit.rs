//! The changes by admins, as a bounded list.

use domain::audit::{AUDIT_ENTRIES_MAX, AuditEntry};

use crate::error::Result;
use crate::record::{Record, Sharing};
use crate::write::Write;

/// Adds an entry with the next id, and removes the one that is no longer among the newest [`AUDIT_ENTRIES_MAX`].
pub fn append_audit_entry(write: &mut Write<'_>, entry: AuditEntry) -> Result<()> {
    let id = write.next_id::<AuditEntry>()?;
    write.put(&AuditEntry { id, ..entry })?;
    if let Some(oldest) = id.checked_sub(AUDIT_ENTRIES_MAX) {
        write.remove::<AuditEntry>(oldest)?;
    }
    Ok(())
}

impl Record for AuditEntry {
    const COLLECTION: &'static str = "audit";
    const SHARING: Sharing = Sharing::AllNodes;
    /// Nothing depends on an entry.
    const MAY_BE_MISSED: bool = true;

    fn id(&self) -> u32 {
        self.id
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use domain::ids::UserId;

    use super::*;
    use crate::store::Store;

    #[test]
    fn the_number_of_recorded_changes_is_limited() {
        let store = Store::temporary(crate::records::schema()).unwrap();
        let entry = AuditEntry {
            id: 0,
            at: 0,
            user: UserId(1),
            username: "anna".to_owned(),
            address: Ipv4Addr::LOCALHOST.into(),
            user_agent: String::new(),
            method: "POST".to_owned(),
            path: "/".to_owned(),
            fields: Vec::new(),
            records: Vec::new(),
            n_records: 1,
        };
        for _ in 0..4 {
            let entry = entry.clone();
            let n = AUDIT_ENTRIES_MAX / 4 + 1;
            let fill = move |write: &mut Write<'_>| {
                (0..n).try_for_each(|_| append_audit_entry(write, entry.clone()))
            };
            store.write_blocking(fill).unwrap();
        }
        let ids = store.collection::<AuditEntry>().ids();
        assert_eq!(
            (ids.len(), ids.first(), ids.last()),
            (AUDIT_ENTRIES_MAX as usize, Some(&5), Some(&(AUDIT_ENTRIES_MAX + 4)))
        );
    }
}
