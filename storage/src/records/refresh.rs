//! What came of the refreshes of playlist accounts, under the account's id.

use domain::account::RefreshRecord;

use crate::record::Record;

impl Record for RefreshRecord {
    const COLLECTION: &'static str = "refreshes";

    fn id(&self) -> u32 {
        self.account.0
    }
}
