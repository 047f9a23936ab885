//! What happens to a store that may be damaged or of an older format: loading it, checking it, salvaging its records,
//! and bringing it up to date.

pub(crate) mod check;
pub(crate) mod damage;
pub(crate) mod format;
pub(crate) mod load;
pub(crate) mod salvage;
pub(crate) mod scan;
