//! The addresses that accounts use, under the id of the account.

use domain::account_addresses::AddressRecord;

use crate::record::{Record, Sharing};

impl Record for AddressRecord {
    const COLLECTION: &'static str = "account_addresses";
    const SHARING: Sharing = Sharing::FullNodes;
    /// Addresses may contain credentials.
    const SEALED: bool = true;
    /// The next failure finds the address again.
    const MAY_BE_MISSED: bool = true;

    fn id(&self) -> u32 {
        self.account.0
    }
}
