//! Streams, in blocks per account: a playlist has hundreds of thousands.

use domain::stream::Stream;

use crate::record::{Kind, Record};

impl Record for Stream {
    const COLLECTION: &'static str = "streams";
    const KIND: Kind = Kind::Paged;
    /// Addresses carry user and password.
    const SEALED: bool = true;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn owner(&self) -> u64 {
        u64::from(self.account.0)
    }
}
