//! The demo, as request handlers see it.

use std::sync::Arc;

use domain::ids::UserId;
use tokio::sync::watch;
use tracing::info;

/// The demo, as request handlers see it.
#[derive(Debug)]
pub struct Demo {
    /// The admin whom a browser on this machine is signed in as.
    pub admin: UserId,
    pub switches: SourceSwitches,
}

/// Stops and starts the clips of the source, and outlives it.
#[derive(Clone, Debug)]
pub struct SourceSwitches(Arc<[(&'static str, watch::Sender<bool>)]>);

impl SourceSwitches {
    /// Makes the switches of clips, by their names.
    pub fn new(clips: Vec<(&'static str, watch::Sender<bool>)>) -> Self {
        Self(clips.into())
    }

    /// Returns the name of each clip and whether it is sent.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, bool)> {
        self.0.iter().map(|(name, on_air)| (*name, *on_air.borrow()))
    }

    /// Starts or stops a clip. Returns its name, or `None` if no clip has it.
    pub fn set(&self, name: &str, is_on_air: bool) -> Option<&'static str> {
        let (name, on_air) = self.0.iter().find(|it| it.0 == name)?;
        on_air.send_replace(is_on_air);
        info!(source = name, on_air = is_on_air, "demo source was stopped or started");
        Some(name)
    }
}
