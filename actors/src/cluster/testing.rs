//! A member without a gateway, for loads on the engine.

use std::io;
use std::sync::Arc;

use cluster::{Engine, NodeInfo, NodeLoad};
use domain::cluster::{BootTime, NodeInput};

use super::{BootTimeReader, Cluster, ClusterLink, EffectReceivers, NodeState};
use crate::events::Events;

/// A member whose parts of the gateway are played by the caller.
#[derive(Debug)]
pub struct TestMember {
    link: ClusterLink,
    pub effects: EffectReceivers,
    cluster: Cluster,
}

impl TestMember {
    /// Begins to join. It has no guard.
    ///
    /// # Errors
    /// If the system has no boot clock.
    pub fn start(engine: Arc<dyn Engine>, info: NodeInfo) -> io::Result<Self> {
        let (link, ends, effects) = super::link();
        let of_member = (link.clone(), ends);
        let load = Arc::new(NodeLoad::default);
        let cluster = Cluster::start(of_member, engine, info, load, Events::unheard(), None, None)?;
        Ok(Self { link, effects, cluster })
    }

    pub fn send(&self, input: NodeInput) {
        self.link.send(input);
    }

    /// Returns the number of members, this one included, that this one sees.
    pub fn n_alive(&self) -> usize {
        self.cluster.view().nodes.iter().filter(|it| it.state == NodeState::Alive).count()
    }

    /// Returns the time by which requests name their limits.
    pub fn now() -> BootTime {
        BootTimeReader::Kernel.now()
    }
}
