"""What is measured unless the command line says otherwise."""

# How often, and over which protocols and network, 'eyelevel close' loads a site.
LOADS = 3
PROTOCOLS = "tcp,quic"
NETWORK = "dsl"

# How often an invalid run is repeated before it is given up.
REPEATS = 2
