<?php
// Calls a server with the PHP client that OpenAPI Generator generates from openapi.yaml. The argument is the folder lib of this client.
require 'GuzzleHttp/autoload.php';
spl_autoload_register(function (string $class) use ($argv): void {
    require $argv[1] . str_replace(['OpenAPI\\Client', '\\'], ['', '/'], $class) . '.php';
});
$configuration = (new OpenAPI\Client\Configuration())->setHost(getenv('CONTRACT_URL'))->setAccessToken(getenv('CONTRACT_TOKEN'));
$api = new OpenAPI\Client\Api\AuthenticationApi(new GuzzleHttp\Client(), $configuration);
echo 'called as ', $api->authenticate()->getOrganisation()->getName(), "\n";
