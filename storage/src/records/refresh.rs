//! What came of the refreshes of playlist accounts, under the account's id.

use domain::account::Refresh;

use crate::record::Record;

impl Record for Refresh {
    const COLLECTION: &'static str = "refreshes";

    fn id(&self) -> u32 {
        self.account.0
    }
}
