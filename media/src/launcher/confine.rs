//! Gives up rights of the current process, for itself and everything that it starts.

use std::{fs, io};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::process::{Gid, Resource, Rlimit, Uid, geteuid, getrlimit, nice, setrlimit};
use rustix::thread::{
    CapabilitySet, capabilities, remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use super::rules::{FileAccess, rules};
use super::{Confinement, ProgramLimits, ProgramUser, filter};

/// The version of Landlock whose rights are used, as far as the kernel has them.
const ABI_MAX: ABI = ABI::V9;
/// Rights of root that a program keeps: opening files of other users.
const KEPT_CAPABILITIES: CapabilitySet = CapabilitySet::DAC_OVERRIDE;

/// Error while giving up rights. The program must not start then.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConfineError {
    #[error("{0}")]
    System(#[from] rustix::io::Errno),
    #[error("{0}")]
    Files(#[from] RulesetError),
    #[error("{0}")]
    Filter(#[from] seccompiler::Error),
    #[error("it would run as root")]
    Root,
    #[error("it cannot join its control group: {0}")]
    Group(io::Error),
}

/// Returns whether this kernel can restrict access to files. Without it, programs can read and write whatever the
/// gateway can.
pub fn can_restrict_files() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.handle_access(AccessFs::from_all(ABI::V1)).and_then(Ruleset::create).is_ok()
}

/// Returns whether this kernel can restrict TCP ports.
pub fn can_restrict_ports() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.handle_access(AccessNet::BindTcp).and_then(Ruleset::create).is_ok()
}

/// Returns whether this kernel can restrict signals to other processes.
pub fn can_restrict_signals() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.scope(Scope::Signal).and_then(Ruleset::create).is_ok()
}

/// Restricts the current thread, which then executes the program.
pub(super) fn confine(confinement: &Confinement) -> Result<(), ConfineError> {
    set_no_new_privs(true)?;
    let Some(strictness) = &confinement.strictness else {
        drop_capabilities(KEPT_CAPABILITIES)?;
        limit(&confinement.limits)?;
        restrict_access(confinement)?;
        return Ok(());
    };
    nice(strictness.niceness)?;
    if let Some(folder) = &strictness.control_group {
        // 0 is the process that writes.
        fs::write(folder.join("cgroup.procs"), "0").map_err(ConfineError::Group)?;
    }
    if let Some(user) = strictness.user {
        become_user(user)?;
    }
    if geteuid().is_root() {
        return Err(ConfineError::Root);
    }
    drop_capabilities(CapabilitySet::empty())?;
    limit(&confinement.limits)?;
    restrict_access(confinement)?;
    // Last, because it refuses calls that the steps before need.
    filter::apply(strictness)?;
    Ok(())
}

/// Becomes another user with one group, for good. Only root can.
fn become_user(user: ProgramUser) -> rustix::io::Result<()> {
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    // Takes the rights of root away as well.
    set_thread_res_uid(uid, uid, uid)
}

/// Takes the rights of root away except these. Without rights, nothing happens.
fn drop_capabilities(kept: CapabilitySet) -> rustix::io::Result<()> {
    let mut sets = capabilities(None)?;
    if sets.permitted.is_empty() {
        return Ok(());
    }
    // Limits what root gets at the next exec.
    for bit in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << bit);
        if !kept.contains(one) && remove_capability_from_bounding_set(one).is_err() {
            // Beyond the last one, or we may not change the set, so that it is limited already.
            break;
        }
    }
    for set in [&mut sets.effective, &mut sets.permitted, &mut sets.inheritable] {
        *set &= kept;
    }
    set_capabilities(None, sets)
}

fn limit(limits: &ProgramLimits) -> rustix::io::Result<()> {
    // A core file would contain what the program read, and may be as large as its memory.
    set_limit(Resource::Core, Some(0))?;
    let set = |resource, limit: u64| set_limit(resource, (limit > 0).then_some(limit));
    set(Resource::Data, limits.memory_bytes_max)?;
    set(Resource::Fsize, limits.file_bytes_max)?;
    set(Resource::Nofile, limits.open_files_max)?;
    set(Resource::Nproc, limits.processes_max)
}

/// Lowers both limits; a lower hard limit stays.
fn set_limit(resource: Resource, limit: Option<u64>) -> rustix::io::Result<()> {
    let Some(limit) = limit else { return Ok(()) };
    let limit = getrlimit(resource).maximum.map_or(limit, |it| it.min(limit));
    setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })
}

/// Restricts access to files and to the network, as far as the kernel can.
fn restrict_access(confinement: &Confinement) -> Result<(), RulesetError> {
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI_MAX))?
        // A program must not kill the gateway or the watchdog.
        .scope(Scope::Signal)?;
    if confinement.is_offline {
        // Without a rule that allows a port, none is.
        ruleset = ruleset.handle_access(AccessNet::from_all(ABI_MAX))?;
    }
    let strictness = confinement.strictness.as_ref();
    let ports = strictness.and_then(|it| it.ports.as_deref());
    if ports.is_some() {
        ruleset = ruleset.handle_access(AccessNet::BindTcp)?;
    }
    if strictness.is_some_and(|it| !it.connects) {
        ruleset = ruleset.handle_access(AccessNet::ConnectTcp)?;
    }
    let mut ruleset = ruleset.create()?;
    for port in ports.unwrap_or_default() {
        ruleset = ruleset.add_rule(NetPort::new(*port, AccessNet::BindTcp))?;
    }
    for rule in rules(confinement) {
        // What has vanished needs no rule.
        if let Ok(path) = PathFd::new(&rule.path) {
            ruleset = ruleset.add_rule(PathBeneath::new(path, rights(rule.access)))?;
        }
    }
    ruleset.restrict_self()?;
    Ok(())
}

fn rights(access: FileAccess) -> BitFlags<AccessFs> {
    match access {
        FileAccess::Read => AccessFs::from_read(ABI_MAX) | AccessFs::ResolveUnix,
        FileAccess::Look => AccessFs::from_read(ABI_MAX) & !AccessFs::Execute,
        FileAccess::Change => {
            AccessFs::from_all(ABI_MAX) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::Execute)
        }
        FileAccess::Write => AccessFs::from_all(ABI_MAX) & !(AccessFs::MakeChar | AccessFs::MakeBlock),
    }
}
