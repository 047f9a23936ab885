//! Programme guides. So far their channels; programmes follow with the import of guides.

pub mod xmltv;
