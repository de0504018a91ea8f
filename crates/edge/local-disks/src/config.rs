//! The configuration: a directory of files, one for each key, as a mounted ConfigMap is. Upstream's keys keep their meanings.

mod fields;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bindery_model::{AccessMode, VolumeMode};
use serde_json::Value;

use crate::pattern::Pattern;
use fields::Fields;

/// What upstream cleans block devices with by default. Where there is no such script, we do the same by ourselves.
pub const DEFAULT_CLEANER: &str = "/scripts/quick_reset.sh";

/// How often upstream looks at everything again, unless told otherwise.
const RESYNC_DEFAULT: Duration = Duration::from_secs(300);

/// The whole configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// What is discovered, by the name of the class that it is offered under.
    pub classes: BTreeMap<String, ClassConfig>,
    /// The node's labels that its volumes get too, where it has them.
    pub node_labels: Vec<String>,
    /// Labels that all volumes get; these win.
    pub labels: BTreeMap<String, String>,
    /// How often everything is looked at again, at least.
    pub resync_min: Duration,
    /// Whether the provisioner's name is without the node's UID.
    pub is_named_by_node_only: bool,
    /// Whether volumes go with their node.
    pub is_owned_by_node: bool,
    /// The taint that is taken off the node once this is ready.
    pub taint: Option<String>,
    /// Files that mean nothing here.
    pub unknown: Vec<String>,
}

/// What is discovered for one class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassConfig {
    /// The directory, as the node has it: this is what volumes say.
    pub host_dir: String,
    /// The directory, as it is seen from here.
    pub mount_dir: String,
    /// How block devices are cleaned.
    pub cleaner: Cleaner,
    /// What is offered: file systems or bare devices.
    pub volume_mode: VolumeMode,
    /// How it may be mounted.
    pub access_mode: AccessMode,
    /// The file system that a device gets when it is first mounted.
    pub fs_type: Option<String>,
    /// Which entries are meant.
    pub patterns: Vec<Pattern>,
    /// More terms of the volumes' affinity, any of which will do, as JSON.
    pub selector: Vec<Value>,
    /// Whether only what is empty is offered.
    pub is_only_empty: bool,
}

/// How a block device is cleaned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cleaner {
    /// By ourselves.
    Builtin(Wipe),
    /// By a command, which finds the device's path in `LOCAL_PV_BLKDEVICE`.
    Command(Vec<String>),
}

/// How we wipe a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wipe {
    /// Everything by which a file system, a partition table or a volume manager would be known is overwritten. Quick, and no secret is safe.
    Quick,
    /// Every byte is overwritten with zero.
    Zero,
    /// The device is told that nothing on it is wanted, and that it has to read as zero. Quick where the device can do that; else it fails.
    Discard,
}

impl Wipe {
    const ALL: [Wipe; 3] = [Wipe::Quick, Wipe::Zero, Wipe::Discard];

    /// The word for it in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Wipe::Quick => "builtin:quick",
            Wipe::Zero => "builtin:zero",
            Wipe::Discard => "builtin:discard",
        }
    }

    fn parse(word: &str) -> Option<Wipe> {
        Wipe::ALL.into_iter().find(|wipe| wipe.as_str() == word)
    }
}

/// What is wrong with a configuration, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// Which file.
    pub file: String,
    /// Which class in it, if it is about one.
    pub class: Option<String>,
    /// Which key of the class.
    pub key: Option<String>,
    /// What is wrong.
    pub problem: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file)?;
        if let Some(class) = &self.class {
            write!(f, "class {class:?}: ")?;
        }
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        f.write_str(&self.problem)
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Reads a configuration: the texts of its files, by their names.
    pub fn parse(files: &BTreeMap<String, String>) -> Result<Config, ConfigError> {
        let mut all = Fields::of_files(files)?;
        if all.flag("useAlphaAPI")? {
            return Err(all.error(
                "useAlphaAPI",
                "the alpha annotation for affinity is long gone: take this key out, or say false",
            ));
        }
        if all.flag("useJobForCleaning")? {
            return Err(all.error(
                "useJobForCleaning",
                "Jobs are not supported: cleaning is always done in this process. Take this key out, or say false",
            ));
        }
        all.skip(&["jobTolerations", "kubeConfig", "namespace"]);
        let wants_taint_off = all.flag("removeNodeNotReadyTaint")?;
        let taint = all.text("provisionerNotReadyNodeTaintKey")?.filter(|key| !key.is_empty());
        if wants_taint_off && taint.is_none() {
            return Err(all.error("provisionerNotReadyNodeTaintKey", "removeNodeNotReadyTaint needs the taint's key"));
        }
        let mut config = Config {
            classes: classes(&mut all)?,
            node_labels: all.texts("nodeLabelsForPV")?.unwrap_or_default(),
            labels: all.labels("labelsForPV")?,
            resync_min: all.duration("minResyncPeriod")?.unwrap_or(RESYNC_DEFAULT),
            is_named_by_node_only: all.flag("useNodeNameOnly")?,
            is_owned_by_node: all.flag("setPVOwnerRef")?,
            taint: taint.filter(|_| wants_taint_off),
            unknown: Vec::new(),
        };
        config.unknown.extend(all.unknown().map(str::to_owned));
        Ok(config)
    }
}

fn classes(all: &mut Fields) -> Result<BTreeMap<String, ClassConfig>, ConfigError> {
    let of_class = all.maps("storageClassMap")?;
    let classes: BTreeMap<String, ClassConfig> =
        of_class.into_iter().map(|(name, fields)| Ok((name, class(fields)?))).collect::<Result<_, ConfigError>>()?;
    for (name, class) in &classes {
        for (other, config) in classes.range::<String, _>(..name) {
            let key = match () {
                () if config.host_dir == class.host_dir => "hostDir",
                () if config.mount_dir == class.mount_dir => "mountDir",
                () => continue,
            };
            let problem = format!("class {other:?} has the same directory: what lies there would be offered twice");
            return Err(all.error_of("storageClassMap", name, key, &problem));
        }
    }
    Ok(classes)
}

fn class(mut fields: Fields) -> Result<ClassConfig, ConfigError> {
    let class = ClassConfig {
        host_dir: fields.directory("hostDir")?,
        mount_dir: fields.directory("mountDir")?,
        cleaner: cleaner(&mut fields)?,
        volume_mode: fields
            .word("volumeMode", "Filesystem or Block", |word| {
                [VolumeMode::Filesystem, VolumeMode::Block].into_iter().find(|mode| mode.as_str() == word)
            })?
            .unwrap_or_default(),
        access_mode: fields
            .word("accessMode", "one of Kubernetes' access modes, such as ReadWriteOnce", AccessMode::parse)?
            .unwrap_or(AccessMode::ReadWriteOnce),
        fs_type: fields.text("fsType")?.filter(|text| !text.is_empty()),
        patterns: patterns(&mut fields)?,
        selector: fields.objects("selector")?,
        is_only_empty: fields.flag("onlyEmpty")?,
    };
    match fields.unknown().next() {
        Some(unknown) => {
            let known = "hostDir, mountDir, blockCleanerCommand, volumeMode, accessMode, fsType, namePattern, selector, onlyEmpty";
            Err(fields.error(unknown, &format!("there is no such key (there are: {known})")))
        }
        None => Ok(class),
    }
}

fn cleaner(fields: &mut Fields) -> Result<Cleaner, ConfigError> {
    const KEY: &str = "blockCleanerCommand";
    let Some(words) = fields.texts(KEY)? else { return Ok(Cleaner::Command(vec![DEFAULT_CLEANER.to_owned()])) };
    let Some(first) = words.first().filter(|first| !first.is_empty()) else {
        return Err(fields.error(KEY, "it is there, and empty: leave it out for the default"));
    };
    if !first.starts_with("builtin:") {
        return Ok(Cleaner::Command(words));
    }
    match Wipe::parse(first).filter(|_| words.len() == 1) {
        Some(wipe) => Ok(Cleaner::Builtin(wipe)),
        None => {
            let known = Wipe::ALL.map(Wipe::as_str).join(", ");
            Err(fields.error(KEY, &format!("{words:?} is no built-in cleaner (there are, without arguments: {known})")))
        }
    }
}

fn patterns(fields: &mut Fields) -> Result<Vec<Pattern>, ConfigError> {
    const KEY: &str = "namePattern";
    let text = fields.text(KEY)?.filter(|text| !text.is_empty()).unwrap_or_else(|| "*".to_owned());
    text.split(',').map(|pattern| Pattern::parse(pattern).map_err(|problem| fields.error(KEY, &problem))).collect()
}
