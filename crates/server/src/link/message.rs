//! What the server and its workers say to each other.

/// Raised with every change that an older peer would misread.
pub(crate) const VERSION: u32 = 3;

/// From a worker to the server.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ToServer {
    #[prost(oneof = "FromWorker", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub(crate) body: Option<FromWorker>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum FromWorker {
    #[prost(message, tag = "1")]
    Hello(Hello),
    #[prost(message, tag = "2")]
    Loaded(Loaded),
    #[prost(message, tag = "3")]
    Finished(Finished),
    #[prost(message, tag = "4")]
    Measured(Measured),
    #[prost(message, tag = "5")]
    Fetch(Fetch),
    /// Nothing else to say, but still there.
    #[prost(message, tag = "6")]
    Alive(Alive),
    /// It wants to go, when it has done what it was sent.
    #[prost(message, tag = "7")]
    Leaving(Leaving),
}

/// From the server to a worker.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ToWorker {
    #[prost(oneof = "FromServer", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub(crate) body: Option<FromServer>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
#[allow(clippy::large_enum_variant, reason = "orders to load are few, and moved once or twice")]
pub(crate) enum FromServer {
    #[prost(message, tag = "1")]
    Welcome(Welcome),
    #[prost(message, tag = "2")]
    Load(Load),
    #[prost(message, tag = "3")]
    Unload(Unload),
    #[prost(message, tag = "4")]
    Run(Run),
    #[prost(message, tag = "5")]
    Measure(Measure),
    /// The payload is the piece of the file that was asked for; empty at its end.
    #[prost(message, tag = "6")]
    Piece(Fetch),
    /// No more batches will come.
    #[prost(message, tag = "7")]
    Leave(Leave),
}

/// The first thing a worker says.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Hello {
    #[prost(uint32, tag = "1")]
    pub(crate) version: u32,
    /// What the server gave to those it lets in.
    #[prost(string, tag = "2")]
    pub(crate) token: String,
    /// Host and process, for people.
    #[prost(string, tag = "3")]
    pub(crate) name: String,
    #[prost(message, repeated, tag = "4")]
    pub(crate) devices: Vec<Device>,
    /// Why the worker cannot work; empty where it can.
    #[prost(string, tag = "5")]
    pub(crate) trouble: String,
    /// Whether the server started it.
    #[prost(bool, tag = "6")]
    pub(crate) is_child: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Device {
    /// `cpu`, `cuda:0`, ...
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    /// Its class, as profiles name it.
    #[prost(string, tag = "2")]
    pub(crate) class: String,
    /// Whether it only pretends.
    #[prost(bool, tag = "3")]
    pub(crate) emulated: bool,
    /// Its sub-cluster; empty where it is in none.
    #[prost(string, tag = "4")]
    pub(crate) subcluster: String,
}

/// The server takes the worker in, or says why not; or, later, why not any more.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Welcome {
    #[prost(string, tag = "1")]
    pub(crate) refusal: String,
    /// Whether it may be otherwise another time.
    #[prost(bool, tag = "2")]
    pub(crate) again: bool,
}

/// Load a model on every device of the worker.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Load {
    #[prost(uint32, tag = "1")]
    pub(crate) instance: u32,
    /// Name and version, for people.
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    /// Where the file is on the server's host; of use to workers there.
    #[prost(string, tag = "3")]
    pub(crate) path: String,
    /// The files to fetch for a worker elsewhere, the model first.
    #[prost(message, repeated, tag = "12")]
    pub(crate) files: Vec<File>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) inputs: Vec<Spec>,
    #[prost(message, repeated, tag = "6")]
    pub(crate) outputs: Vec<Spec>,
    /// 0 where the model has no batch dimension.
    #[prost(uint32, tag = "7")]
    pub(crate) max_batch: u32,
    /// l(b) in nanoseconds for b = 1, 2, ...: how long an emulated device takes.
    #[prost(uint64, repeated, tag = "8")]
    pub(crate) latency_ns: Vec<u64>,
    /// Whether the model exists on emulated devices only.
    #[prost(bool, tag = "9")]
    pub(crate) emulated: bool,
    #[prost(message, repeated, tag = "10")]
    pub(crate) input_reshapes: Vec<Reshape>,
    #[prost(message, repeated, tag = "11")]
    pub(crate) output_reshapes: Vec<Reshape>,
}

/// A file of a model, as it was when the model was loaded first.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct File {
    /// Relative to the version's folder.
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(uint64, tag = "2")]
    pub(crate) bytes: u64,
    /// When it was last written.
    #[prost(uint64, tag = "3")]
    pub(crate) modified_ns: u64,
}

/// A tensor that looks different to clients and to the model.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Reshape {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) from: Vec<i64>,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) to: Vec<i64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Unload {
    #[prost(uint32, tag = "1")]
    pub(crate) instance: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Loaded {
    #[prost(uint32, tag = "1")]
    pub(crate) instance: u32,
    /// Why it could not be loaded; empty where it was.
    #[prost(string, tag = "2")]
    pub(crate) trouble: String,
    /// Whether that is because its files are not those that the server noted.
    #[prost(bool, tag = "3")]
    pub(crate) changed: bool,
}

/// Run a batch. The payload is the content of the inputs, one after the other.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Run {
    #[prost(uint64, tag = "1")]
    pub(crate) batch: u64,
    /// Which of the worker's devices.
    #[prost(uint32, tag = "2")]
    pub(crate) device: u32,
    #[prost(uint32, tag = "3")]
    pub(crate) instance: u32,
    #[prost(uint32, tag = "4")]
    pub(crate) rows: u32,
    #[prost(message, repeated, tag = "5")]
    pub(crate) inputs: Vec<Part>,
}

/// A batch has run. The payload is the content of the outputs, one after the other.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Finished {
    #[prost(uint64, tag = "1")]
    pub(crate) batch: u64,
    #[prost(uint32, tag = "2")]
    pub(crate) device: u32,
    #[prost(message, repeated, tag = "3")]
    pub(crate) outputs: Vec<Part>,
    /// How long the device was busy with it.
    #[prost(uint64, tag = "4")]
    pub(crate) busy_ns: u64,
    /// Why the model failed; empty where it did not.
    #[prost(string, tag = "5")]
    pub(crate) trouble: String,
}

/// Measure l(b) of a model on the worker's first device.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct Measure {
    #[prost(uint32, tag = "1")]
    pub(crate) instance: u32,
    /// Larger batches than those that take so long need not be measured: no deadline allows them.
    #[prost(uint64, tag = "2")]
    pub(crate) latency_max_ns: u64,
    /// How long the other models of the device can do without it; 0 where there are none.
    #[prost(uint64, tag = "3")]
    pub(crate) run_max_ns: u64,
    /// The size of the dimensions that the model leaves open.
    #[prost(uint64, tag = "4")]
    pub(crate) open_size: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Measured {
    #[prost(uint32, tag = "1")]
    pub(crate) instance: u32,
    #[prost(message, repeated, tag = "2")]
    pub(crate) points: Vec<Point>,
    #[prost(string, tag = "3")]
    pub(crate) trouble: String,
    /// Whether more would have been measured if other models had not needed the device.
    #[prost(bool, tag = "4")]
    pub(crate) curtailed: bool,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct Point {
    #[prost(uint32, tag = "1")]
    pub(crate) batch: u32,
    #[prost(double, tag = "2")]
    pub(crate) latency_ms: f64,
}

/// Said every so often, whatever else a worker is busy with.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct Alive {}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct Leaving {}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct Leave {}

/// Send a part of a file of a model that was to be loaded.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct Fetch {
    #[prost(uint32, tag = "1")]
    pub(crate) instance: u32,
    /// Which of [`Load::files`].
    #[prost(uint32, tag = "2")]
    pub(crate) file: u32,
    #[prost(uint64, tag = "3")]
    pub(crate) offset: u64,
}

/// A tensor's description; its content is a part of the payload.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Part {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) datatype: String,
    #[prost(uint64, repeated, tag = "3")]
    pub(crate) shape: Vec<u64>,
    #[prost(uint64, tag = "4")]
    pub(crate) bytes: u64,
}

/// A declared tensor.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Spec {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) datatype: String,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) shape: Vec<i64>,
}
