//! Results of the last refresh of each playlist account, under the id of the account.

use domain::account::RefreshRecord;

use crate::record::{Record, Sharing};

impl Record for RefreshRecord {
    const COLLECTION: &'static str = "refreshes";
    const SHARING: Sharing = Sharing::AllNodes;
    /// The next refresh writes it again.
    const MAY_BE_MISSED: bool = true;

    fn id(&self) -> u32 {
        self.account.0
    }
}
