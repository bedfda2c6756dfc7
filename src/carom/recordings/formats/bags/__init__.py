"""What ROS bags and MCAP files have in common: containers, message definitions, decoding, poses, frames."""
