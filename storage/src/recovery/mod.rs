//! Opening a store that may be damaged or have an older format: loading, checking, salvaging and migrating it.

pub(crate) mod check;
pub(crate) mod damage;
pub(crate) mod inspect;
pub(crate) mod load;
pub(crate) mod migration;
pub(crate) mod open;
pub(crate) mod salvage;
pub(crate) mod scan;
#[cfg(test)]
mod tests;
