"""Usage: write_blocklist.py INCIDENT_JSON > blocklist.conf"""

import ipaddress
import json
import sys

with open(sys.argv[1]) as file:
    clients = [ipaddress.ip_network(source["client"]) for source in json.load(file)["sources"]]
for network in sorted(clients, key=lambda network: (network.version, network)):
    print(f"deny {network.network_address if network.version == 4 else network};")
